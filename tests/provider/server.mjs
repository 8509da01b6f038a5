// An OpenID Connect provider on loopback, with its own pages to sign in and to consent:
// node server.mjs '{"host": "provider.localhost", "client": "id", "secret": "...", "redirect": "..."}'
//
// Accepts every name with any password, and prints its address.

import { createServer } from "node:http";

import Provider from "oidc-provider";

const { host, client, secret, redirect } = JSON.parse(process.argv[2]);

const claims = (sub) => ({
  sub,
  name: sub.charAt(0).toUpperCase() + sub.slice(1),
  email: "ann@example.org", // everybody's, and nobody's proven
  email_verified: false,
});

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://${host}:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: client, client_secret: secret, redirect_uris: [redirect] }],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"] },
    cookies: { keys: ["a key of the tests"] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => claims(id) }),
  });
  server.on("request", provider.callback());
  process.stdout.write(`answers at ${issuer}\n`);
});
