// Drives @google-cloud/datastore by lines of JSON: one request per input line, one response per
// output line.
//
// Owns the conversion between the suite's values and those of the client library. A value is
// {"type": ..., "value": ...}; integers are text, because JSON numbers cannot represent them all.

import { createInterface } from 'node:readline';
import { Datastore, PropertyFilter, and, or, AggregateField, v1 } from '@google-cloud/datastore';
import { createRequire } from 'node:module';

const { grpc } = createRequire(import.meta.resolve('@google-cloud/datastore'))('google-gax');

const clients = new Map();
const transactions = new Map();
let counter = 0;

function clientOf({ address, project, namespace, database }) {
  const name = JSON.stringify([address, project, namespace, database]);
  if (!clients.has(name)) {
    process.env.DATASTORE_EMULATOR_HOST = address;
    const options = { projectId: project };
    if (namespace) options.namespace = namespace;
    if (database) options.databaseId = database;
    clients.set(name, new Datastore(options));
  }
  return clients.get(name);
}

function adminOf({ address, project }) {
  const [servicePath, port] = address.split(':');
  const sslCreds = grpc.credentials.createInsecure();
  return new v1.DatastoreAdminClient({ servicePath, port: Number(port), sslCreds, projectId: project });
}

function keyOf(client, path) {
  return client.key(path.map((part) => (typeof part === 'number' ? Datastore.int(String(part)) : part)));
}

function toClient(client, { type, value }) {
  switch (type) {
    case 'int': return Datastore.int(value);
    case 'double': return Datastore.double(Number(value));
    case 'bytes': return Buffer.from(value, 'base64');
    case 'time': return new Date(value);
    case 'point': return Datastore.geoPoint({ latitude: value[0], longitude: value[1] });
    case 'key': return keyOf(client, value);
    case 'array': return value.map((each) => toClient(client, each));
    case 'entity': return mapped(value, (each) => toClient(client, each));
    default: return value;
  }
}

function fromClient(client, value) {
  if (value === null || value === undefined) return { type: 'null', value: null };
  if (Datastore.isInt(value)) return { type: 'int', value: String(value.value) };
  if (Datastore.isDouble(value)) return { type: 'double', value: doubleText(Number(value.value)) };
  if (Object.keys(value).join() === 'latitude,longitude') {  // the library's form of a geo point
    return { type: 'point', value: [value.latitude, value.longitude] };
  }
  if (client.isKey(value)) return { type: 'key', value: pathOf(value) };
  if (typeof value === 'boolean') return { type: 'bool', value };
  if (typeof value === 'number') return { type: 'double', value: doubleText(value) };
  if (typeof value === 'string') return { type: 'string', value };
  if (Buffer.isBuffer(value)) return { type: 'bytes', value: value.toString('base64') };
  if (value instanceof Date) return { type: 'time', value: value.toISOString() };
  if (Array.isArray(value)) {
    return { type: 'array', value: value.map((each) => fromClient(client, each)) };
  }
  return { type: 'entity', value: mapped(value, (each) => fromClient(client, each)) };
}

const doubleText = (number) => (Object.is(number, -0) ? '-0' : String(number));

const mapped = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));

function pathOf(key) {
  const own = key.id === undefined ? key.name : Number(key.id);
  return [...(key.parent ? pathOf(key.parent) : []), key.kind, own];
}

const rowOf = (client, entity) => ({
  path: pathOf(entity[client.KEY]),
  properties: mapped(entity, (value) => fromClient(client, value)),
});

function filterOf(client, given) {
  if (given.any) return or(given.any.map((each) => filterOf(client, each)));
  if (given.all) return and(given.all.map((each) => filterOf(client, each)));
  return new PropertyFilter(given.name, given.operator, toClient(client, given.value));
}

function queryOf(client, asker, asked) {
  let query = asker.createQuery(asked.kind);
  if (asked.filter) query = query.filter(filterOf(client, asked.filter));
  if (asked.ancestor) query = query.hasAncestor(keyOf(client, asked.ancestor));
  for (const [name, descending] of asked.order) query = query.order(name, { descending });
  if (asked.projection.length) query = query.select(asked.projection);
  if (asked.distinct.length) query = query.groupBy(asked.distinct);
  if (asked.limit !== null) query = query.limit(asked.limit);
  if (asked.offset) query = query.offset(asked.offset);
  if (asked.cursor) query = query.start(asked.cursor);
  return query;
}

const operations = {
  async put(client, { transaction, path, properties, unindexed }) {
    const key = keyOf(client, path);
    const data = mapped(properties, (value) => toClient(client, value));
    const request = { key, data, excludeFromIndexes: unindexed };
    const asker = transaction ? transactions.get(transaction) : client;
    await asker.upsert(request);
    return transaction ? null : pathOf(key);
  },
  async insert(client, { path, properties }) {
    const key = keyOf(client, path);
    await client.insert({ key, data: mapped(properties, (value) => toClient(client, value)) });
    return pathOf(key);
  },
  async update(client, { path, properties }) {
    const key = keyOf(client, path);
    await client.update({ key, data: mapped(properties, (value) => toClient(client, value)) });
  },
  async transform(client, { path, properties, transforms }) {
    const data = mapped(properties, (value) => toClient(client, value));
    await client.save({ key: keyOf(client, path), data, transforms });
  },
  async explain(client, { asked, analyze }) {
    const query = queryOf(client, client, asked);
    const [found, info] = await client.runQuery(query, { explainOptions: { analyze } });
    return { count: found.length, metrics: info.explainMetrics };
  },
  async get(client, { transaction, paths }) {
    const asker = transaction ? transactions.get(transaction) : client;
    const keys = paths.map((path) => keyOf(client, path));
    const [found] = await asker.get(keys, { wrapNumbers: true });
    return found.filter((entity) => entity).map((entity) => rowOf(client, entity));
  },
  async delete(client, { transaction, paths }) {
    const asker = transaction ? transactions.get(transaction) : client;
    await asker.delete(paths.map((path) => keyOf(client, path)));
  },
  async query(client, { transaction, asked }) {
    const asker = transaction ? transactions.get(transaction) : client;
    const [found, info] = await asker.runQuery(queryOf(client, asker, asked), { wrapNumbers: true });
    return {
      rows: found.map((entity) => rowOf(client, entity)),
      cursor: info.endCursor,
      isEnd: info.moreResults === Datastore.NO_MORE_RESULTS,
    };
  },
  async aggregate(client, { asked, function: name, property }) {
    const field = name === 'count' ? AggregateField.count()
      : name === 'sum' ? AggregateField.sum(property) : AggregateField.average(property);
    const query = client.createAggregationQuery(queryOf(client, client, asked));
    query.addAggregation(field.alias('answer'));
    const [[{ answer }]] = await client.runAggregationQuery(query, { wrapNumbers: true });
    return fromClient(client, answer);
  },
  async allocate(client, { path, count }) {
    const [keys] = await client.allocateIds(keyOf(client, path), count);
    return keys.map(pathOf);
  },
  async adminClient(client, { scope, prefix }) {
    const admin = adminOf(scope);
    const projectId = scope.project;
    const [indexes] = await admin.listIndexes({ projectId, pageSize: 1 });
    const [one] = await admin.getIndex({ projectId, indexId: indexes[0].indexId });
    const labels = { by: 'node' };
    const [exporting] = await admin.exportEntities({ projectId, outputUrlPrefix: prefix, labels });
    const [{ outputUrl }, exported] = await exporting.promise();
    const [importing] = await admin.importEntities({ projectId, inputUrl: outputUrl });
    const [, imported] = await importing.promise();
    const listed = [];
    for await (const each of admin.operationsClient.listOperationsAsync({ name: `projects/${projectId}` })) {
      listed.push(each.name);
    }
    await admin.close();
    const count = ({ progressEntities }) => Number(progressEntities.workCompleted);
    return {
      indexes, one, outputUrl, labels: exported.common.labels, listed,
      exported: count(exported), imported: count(imported),
    };
  },
  async adminMethods(client, { bucket }) {
    const [indexes] = await client.getIndexes();
    const [one] = await indexes[0].get();
    const [exporting] = await client.export({ bucket });
    const [{ outputUrl }] = await exporting.promise();
    const [importing] = await client.import({ file: outputUrl });
    const [, imported] = await importing.promise();
    return {
      ids: indexes.map(({ id }) => id), one: one.metadata ?? one, outputUrl,
      imported: Number(imported.progressEntities.workCompleted),
    };
  },
  async begin(client, { readOnly }) {
    const transaction = client.transaction({ readOnly });
    await transaction.run();
    counter += 1;
    transactions.set(String(counter), transaction);
    return String(counter);
  },
  async commit(client, { transaction }) {
    await transactions.get(transaction).commit({ retry: null });
    transactions.delete(transaction);
  },
  async rollback(client, { transaction }) {
    await transactions.get(transaction).rollback();
    transactions.delete(transaction);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { operation, scope, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await operations[operation](clientOf(scope), { ...given, scope }) };
  } catch (error) {
    answer = { code: error.code ?? null, message: String(error.stack) };
  }
  process.stdout.write(JSON.stringify(answer, (_, value) => value ?? null) + '\n');
}
