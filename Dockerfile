# Flatthread in a container: docs/deploying.md has the steps. Any image with Python 3.11 or newer and
# its module venv can be the base.
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS build
WORKDIR /source
COPY requirements.txt requirements-release.txt ./
RUN python3 -m venv /opt/flatthread \
    && /opt/flatthread/bin/pip install --no-cache-dir --require-hashes -r requirements.txt \
    && python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-release.txt
COPY . .
RUN /opt/build/bin/hatchling build --target wheel --directory /opt/build \
    && /opt/flatthread/bin/pip install --no-cache-dir --no-deps /opt/build/*.whl \
    && /opt/flatthread/bin/pip uninstall --yes pip

FROM ${BASE}
# The number lets a host give a folder to this user: chown 10001 FOLDER.
RUN useradd --uid 10001 flatthread && install -d -m 0700 -o flatthread /data
COPY --from=build /opt/flatthread /opt/flatthread
# Imports need temporary files as large as the import, so they are on the volume.
ENV PATH=/opt/flatthread/bin:$PATH \
    FLATTHREAD_DATA=/data \
    HOST=0.0.0.0 \
    TMPDIR=/data
USER 10001
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python3", "-c", \
    "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('PORT') or 8080), timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["flatthread", "serve"]
