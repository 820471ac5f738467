'use strict';
// What the package itself does, whatever the server.
const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const test = require('node:test');
const { kvs, Filter, FilterConditions, ForgeKvsAPIError, ForgeKvsError, MetadataField } = require('@forge/kvs');
const { answering, at, sent } = require('./helpers');

const ttl = { value: 1, unit: 'HOURS' };
const expireTimeOf = async (key) => (await kvs.get(key, { metadataFields: [MetadataField.EXPIRE_TIME] })).expireTime;

test('ttl in the third argument of transact().set is dropped; it belongs in the fourth', async () => {
  const [{ body: third }] = await sent(() => kvs.transact().set('third', 1, { ttl }).execute());
  assert.deepEqual(third, { set: [{ key: 'third', value: 1 }] });
  assert.equal(await expireTimeOf('third'), undefined);
  const [{ body: fourth }] = await sent(() => kvs.transact().set('fourth', 1, undefined, { ttl }).execute());
  assert.deepEqual(fourth, { set: [{ key: 'fourth', value: 1, options: { ttl } }] });
  assert.ok(Date.parse(await expireTimeOf('fourth')) > Date.now());
});

test('an empty Filter in a transaction throws and sends nothing', async () => {
  const empty = new Filter();
  empty.and('version', FilterConditions.equalTo(0)); // gives another one, and leaves this empty
  const guard = { entityName: 'lease', conditions: empty };
  const calls = await sent(async () => {
    for (const transaction of [
      kvs.transact().set('key', {}, guard), kvs.transact().delete('key', guard), kvs.transact().check('key', guard),
    ]) {
      await assert.rejects(transaction.execute(), (error) => {
        assert.ok(error instanceof ForgeKvsError && !(error instanceof ForgeKvsAPIError));
        assert.equal(error.message, 'Builder must have at least one condition set');
        assert.ok(!('code' in error));
        return true;
      });
    }
  });
  assert.deepEqual(calls, []);
});

test('an empty Filter in a query is left out: everything is found', async () => {
  const [{ body }] = await sent(() => kvs.entity('lease').query().index('version').filters(new Filter()).getMany());
  assert.deepEqual(body, { entityName: 'lease', indexName: 'version' });
});

test('there is no equalsTo', () => {
  assert.equal(FilterConditions.equalsTo, undefined);
});

const calls = {
  get: () => kvs.get('key'),
  getSecret: () => kvs.getSecret('key'),
  'entity get': () => kvs.entity('lease').get('key'),
  delete: () => kvs.delete('key'),
  deleteSecret: () => kvs.deleteSecret('key'),
  'entity delete': () => kvs.entity('lease').delete('key'),
  set: () => kvs.set('key', 1),
  query: () => kvs.query().getMany(),
  transact: () => kvs.transact().set('key', 1).execute(),
};

for (const [name, call] of Object.entries(calls)) {
  const swallows = /get|delete/i.test(name);
  test(`KEY_NOT_FOUND ${swallows ? 'becomes undefined' : 'is an error'} on ${name}, NOT_FOUND is always an error`, async () => {
    const body = (code) => JSON.stringify({ code, message: 'not there' });
    await answering({ status: 404, body: body('NOT_FOUND') }, () => assert.rejects(call(), { code: 'NOT_FOUND' }));
    await answering({ status: 404, body: body('KEY_NOT_FOUND') }, async () => {
      if (swallows) assert.equal(await call(), undefined);
      else await assert.rejects(call(), { code: 'KEY_NOT_FOUND' });
    });
  });
}

test('an error body counts whatever its content type; its other members become the context', async () => {
  const body = JSON.stringify({ code: 'C', message: 'm', context: { a: 1 }, b: 2 });
  const headers = { 'content-type': 'text/plain', 'x-trace-id': 'trace' };
  await answering({ status: 418, headers, body }, () => assert.rejects(kvs.set('key', 1), {
    name: 'ForgeKvsError', code: 'C', message: 'm', context: { a: 1, b: 2 },
    responseDetails: {
      status: 418, statusText: "I'm a Teapot", traceId: 'trace', httpMethod: 'POST', httpPath: '/api/v1/set',
      responseBodyLength: body.length,
    },
  }));
});

test('any other error body is UNKNOWN_ERROR', async () => {
  for (const body of ['', '<html>', '"code"', '{"code":"C"}', '{"message":"m"}', '[]']) {
    await answering({ status: 502, body }, () => assert.rejects(kvs.set('key', 1), (error) => {
      assert.ok(error instanceof ForgeKvsAPIError);
      assert.deepEqual(
        [error.code, error.message, error.context],
        ['UNKNOWN_ERROR', 'Unexpected error in Forge KVS API', { responseText: body }],
      );
      assert.equal(error.responseDetails.traceId, null);
      return true;
    }));
  }
});

test('a success that is no JSON is UNKNOWN_ERROR with the status of the success', async () => {
  await answering({ status: 200, body: 'OK' }, () => assert.rejects(kvs.get('key'), (error) => {
    assert.deepEqual([error.code, error.responseDetails.status], ['UNKNOWN_ERROR', 200]);
    return true;
  }));
});

test('a transport failure is a plain TypeError without code', async () => {
  const server = http.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  await at(`http://127.0.0.1:${port}`, () => assert.rejects(kvs.get('key'), (error) => {
    assert.equal(error.constructor, TypeError);
    assert.equal(error.message, 'fetch failed');
    assert.ok(!('code' in error) && !('responseDetails' in error));
    return true;
  }));
});
