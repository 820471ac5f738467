// Does an op in a store, once, and sorts what came back. Nothing is retried.
//
// A store has: refuse(op), which gives the reply to an op that is not sent, if it is
// such a one; ready(), what is needed before the first op; ask(op), one request, which
// gives its reply or throws the package's error; codeOf(error); and answers, the table
// by which errors are sorted.

import { now, until } from './clock.js';

// perform does an op, as request.js gives it, and gives its reply: the JSON of
// contend.reply/1.
export async function perform(store, op) {
  if (op.kind === 'sequence') return performSequence(store, op);
  const refused = store.refuse(op);
  if (refused) return { ...refused, attempts: 0 };
  let began = now();
  let reply;
  try {
    await store.ready();
    began = await until(op.notBefore);
    reply = await store.ask(op);
  } catch (thrown) {
    reply = failed(store, thrown ?? {});
  }
  return { ...reply, attempts: 1, server: { began_ms: began, ended_ms: Math.max(began, now()) } };
}

// listed gives a page of keys, or the reply that there was in its place, and what it means.
export async function listed(store, list) {
  try {
    await store.ready();
    return await list();
  } catch (thrown) {
    const reply = failed(store, thrown ?? {});
    return { error: `the storage does not list its keys: ${reply.code} ${reply.message}`, reply };
  }
}

// The outcome of a sequence is that of its last op.
async function performSequence(store, { notBefore, ops }) {
  await until(notBefore);
  const parts = [];
  for (const op of ops) parts.push(await perform(store, op));
  const asked = parts.filter((part) => part.server);
  return {
    outcome: parts.at(-1).outcome,
    attempts: asked.length > 0 ? 1 : 0,
    server: asked.length > 0 ? { began_ms: asked[0].server.began_ms, ended_ms: asked.at(-1).server.ended_ms } : undefined,
    parts,
  };
}

// outcomeOf sorts an error by the first row that fits. One without a status is of
// the way there, and that or a server's error says nothing of the write; nor does a
// success that cannot be read.
function outcomeOf(answers, code, status) {
  if (status === undefined || status === 202 || status >= 500) return 'unknown';
  if (status < 300) return 'unmapped'; // a login page, say
  const row = answers.find((answer) => (answer.code ?? code) === code && (answer.status ?? status) === status);
  return row?.outcome ?? 'unmapped';
}

// failed goes by code and status: the name is the same for every error.
function failed(store, error) {
  const { name, message, code, responseDetails, context, suggestion, cause } = error;
  const status = responseDetails?.status;
  const told = store.codeOf(error);
  return {
    outcome: outcomeOf(store.answers, told, status),
    code: told ?? 'connection',
    status,
    message: cause?.message ? `${message}: ${cause.message}` : message,
    trace: responseDetails?.traceId ?? undefined,
    raw: { name, message, code, responseDetails, context, suggestion },
  };
}

// milliseconds gives a time of a value as a number.
export function milliseconds(time) {
  return time === undefined ? undefined : Date.parse(time);
}

// rfc3339 gives a time in the form that a reply has, to the millisecond.
export function rfc3339(time) {
  const date = new Date(time ?? NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
