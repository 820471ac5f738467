'use strict';
// The server refuses more than 4000 writes a minute, in units of 10 KB.
const assert = require('node:assert/strict');
const test = require('node:test');
const { kvs } = require('@forge/kvs');
const { refused } = require('./helpers');

test('over a quota the package\'s error has status 429 and one of the documented codes', async () => {
  const big = Array.from({ length: 25 }, (_, i) => ({ key: `big ${i}`, value: 'x'.repeat(200_000) }));
  const cost = Math.ceil(JSON.stringify(big).length / 10_240); // units of one batch, at least
  let written = 0;
  const fill = async () => {
    for (;;) {
      await kvs.batchSet(big);
      written += cost;
    }
  };
  const error = await fill().catch((error) => error);
  assert.ok(written > 4000 - 2 * cost, `refused after ${written} units`);
  assert.match(error.code, /^(RATE_LIMIT_EXCEEDED|TOO_MANY_REQUESTS|REQUEST_THROTTLED)$/);
  await refused(Promise.reject(error), { status: 429, code: error.code, path: 'batch/set' });
  assert.equal((await kvs.get('big 0')).length, 200_000);
});
