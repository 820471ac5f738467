// The web trigger: takes one op as contend.op/1 and answers with contend.reply/1.

import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { now } from './clock.js';
import { kvsStore, listKvs } from './kvs.js';
import { KINDS, Refused, parse } from './request.js';
import { listSql, sqlStore } from './sql.js';
import { listed, perform } from './storage.js';

// Read and found missing by a ping, so that the way to the storage is warm.
const PING_KEY = 'contend-ping';

// Clocks are compared isolate by isolate.
const ISOLATE = randomUUID();

let cold = true;

export async function run(request) {
  const received = now();
  if (!authorized(request.headers)) return { statusCode: 401, headers: {}, body: '' };
  let asked;
  try {
    if (request.method !== 'POST') throw new Refused('the method must be POST');
    asked = parse(request.body, received);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return answer(400, { error: error.message });
  }
  const first = cold;
  cold = false;
  if (asked.list) {
    const [store, list] = asked.list.home === 'sql' ? [sqlStore, listSql] : [kvsStore('kvs'), listKvs];
    const result = await listed(store, () => list(asked.list));
    return answer(result.reply?.outcome === 'invalid' ? 400 : 200, result);
  }
  const inSql = asked.create === 'sql' && asked.op?.kind !== 'raw';
  const store = inSql ? sqlStore : kvsStore(asked.create);
  const reply = await perform(store, asked.op ?? { kind: 'read', key: PING_KEY });
  return answer(200, {
    ...(asked.ping ? { storage: reply.outcome, kinds: KINDS } : { reply }),
    isolate: ISOLATE,
    received_ms: received,
    now_ms: now(),
    package: store.package,
    node: process.version,
    simulated: globalThis.__contend_simulated__ === true,
    cold: first || undefined,
  });
}

function answer(statusCode, body) {
  return {
    statusCode,
    headers: { 'Content-Type': ['application/json'] },
    body: JSON.stringify({ schema: 'contend.reply/1', ...body }),
  };
}

// authorized compares digests, which are of one length, in constant time. An app
// without a token lets no one in.
function authorized(headers) {
  const token = process.env.CONTEND_FORGE_TOKEN;
  const given = Object.entries(headers ?? {})
    .filter(([name]) => name.toLowerCase() === 'authorization')
    .flatMap(([, values]) => values);
  const same = timingSafeEqual(digest(given.join()), digest(`Bearer ${token}`));
  return Boolean(token) && same;
}

function digest(text) {
  return createHash('sha256').update(text).digest();
}
