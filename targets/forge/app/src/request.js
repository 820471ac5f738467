// Reads the body of a request, contend.op/1, and refuses what is none.

export const SCHEMA = 'contend.op/1';

// Every key of contend begins with this; others are not touched.
const PREFIX = 'contend-';

// A wait has to end well within the 55 s that an invocation may take.
const FARTHEST_MS = 20_000;

// Refused tells in its message, which is sent back, what is wrong with a request.
export class Refused extends Error {}

function refuse(reason) {
  throw new Refused(reason);
}

const CREATES = ['kvs', 'entity', 'transact', 'sql'];

// parse gives {ping: true, create}, {list} or {create, op}. In an op, notBefore is in milliseconds
// since 1970 and ttl in whole seconds, rounded up.
export function parse(text, now) {
  const body = object('the body', json(text));
  if (body.schema !== SCHEMA) refuse(`schema must be ${SCHEMA}`);
  if (body.ping === true) return { ping: true, create: oneOf('create', body.create ?? 'kvs', CREATES) };
  if (body.list !== undefined) return { list: parseList(object('list', body.list)) };
  const create = oneOf('create', body.create, CREATES);
  const cas = oneOf('cas', body.cas, ['transact', 'sql']);
  if ((create === 'sql') !== (cas === 'sql')) refuse('create sql and cas sql go together');
  if (typeof body.prefix !== 'string' || !body.prefix.startsWith(PREFIX)) refuse(`prefix must begin with ${PREFIX}`);
  return { create, op: parseOp(body.op, { prefix: body.prefix, latest: now + FARTHEST_MS }) };
}

function parseList({ home, prefix, cursor }) {
  if (typeof prefix !== 'string' || !prefix.startsWith(PREFIX)) refuse(`prefix must begin with ${PREFIX}`);
  if (cursor !== undefined && typeof cursor !== 'string') refuse('cursor must be a string');
  return { home: oneOf('home', home, ['absent', 'version', 'sql']), prefix, cursor };
}

const SINGLE = ['read', 'write', 'delete', 'renew'];

// KINDS are told to who pings: an app that knows no renewals does not look at the condition of a delete.
export const KINDS = [...SINGLE, 'sequence', 'raw'];

function parseOp(value, limits) {
  const op = object('op', value);
  const kind = oneOf('kind', op.kind, KINDS);
  const notBefore = op.not_before === undefined ? undefined : instant('not_before', op.not_before);
  if (notBefore > limits.latest) refuse(`not_before is more than ${FARTHEST_MS / 1000} s ahead`);
  if (kind === 'sequence') {
    if (!Array.isArray(op.ops) || op.ops.length === 0) refuse('a sequence needs ops');
    for (const part of op.ops) oneOf('kind', object('op', part).kind, SINGLE);
    return { kind, notBefore, ops: op.ops.map((part) => parseOp(part, limits)) };
  }
  if (typeof op.key !== 'string' || !op.key.startsWith(limits.prefix)) refuse('the key is outside the prefix');
  if (kind === 'raw') return { kind, notBefore, raw: parseRaw(object('raw', op.raw)), prefix: limits.prefix };
  const single = { kind, notBefore, key: op.key, home: oneOf('home', op.home ?? '', ['', 'absent', 'version']) };
  switch (kind) {
    case 'write':
      return { ...single, ...parseValue(op), ...parseCondition(op, ['', 'absent', ...OF_A_RECORD, 'unmodified']) };
    case 'renew':
      return { ...single, ...parseValue(op), ...parseCondition(op, OF_A_RECORD) };
    case 'delete':
      return { ...single, ...parseCondition(op, ['', ...OF_A_RECORD]) };
    default:
      return single;
  }
}

// OF_A_RECORD are the guards that a record's owner knows.
const OF_A_RECORD = ['version', 'token'];

function parseRaw({ path, body }) {
  if (typeof path !== 'string') refuse('the path of raw must be a string');
  if (typeof body !== 'object' || body === null) refuse('the body of raw must be an object or a list');
  return { path, body };
}

function parseValue(op) {
  const { token, version, updated_at, expires_at, body } = object('value', op.value);
  if (typeof token !== 'string') refuse('token must be a string');
  integer('version', version);
  for (const time of [updated_at, expires_at]) if (time !== undefined) instant('a time of the value', time);
  const ttl = integer('ttl_ms', op.ttl_ms ?? 0);
  if (ttl < 0) refuse('ttl_ms must not be negative');
  return { value: { token, version, updated_at, expires_at, body }, ttl: Math.ceil(ttl / 1000) };
}

function parseCondition(op, guards) {
  const { guard, counter, updated_at: unmodified, token } = object('if', op.if ?? { guard: '' });
  oneOf('guard', guard, guards);
  if (guard === 'version') integer('counter', counter);
  if (guard === 'unmodified') wholeMilliseconds('updated_at', unmodified);
  if (guard === 'token' && typeof token !== 'string') refuse('the token of a condition must be a string');
  return { guard, counter, unmodified, token };
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return refuse('the body is not JSON');
  }
}

function object(name, value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(`${name} must be an object`);
  return value;
}

function oneOf(name, value, values) {
  if (!values.includes(value)) refuse(`${name} must be one of ${values.map((v) => `"${v}"`).join(', ')}`);
  return value;
}

function integer(name, value) {
  if (!Number.isSafeInteger(value)) refuse(`${name} must be a whole number`);
  return value;
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

// Date.parse cuts off what is finer than a millisecond; an instant to wait for is
// rounded up.
const FINER = /\.\d{3}\d*[1-9]/;

function wholeMilliseconds(name, text) {
  instant(name, text);
  if (FINER.test(text)) refuse(`${name} must be in whole milliseconds`);
}

function instant(name, text) {
  const milliseconds = typeof text === 'string' && RFC3339.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(milliseconds)) refuse(`${name} must be a time in RFC 3339`);
  return milliseconds + (FINER.test(text) ? 1 : 0);
}
