'use strict';
const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { ForgeKvsAPIError, ForgeKvsError } = require('@forge/kvs');
const { version: packageVersion } = require('@forge/kvs/package.json');

const reasons = {
  400: 'Bad Request',
  404: 'Not Found',
  409: 'Conflict',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
};

// refused wants a promise to be rejected with exactly the error that the package
// builds of an answer whose body is {code, message} and nothing else. With no
// message given any will do.
async function refused(promise, { status, code, message: want, path }) {
  const error = await promise.then(
    (value) => assert.fail(`want ${code}, got ${JSON.stringify(value)}`),
    (error) => error,
  );
  assert.ok(error instanceof ForgeKvsAPIError && error instanceof ForgeKvsError, error.stack);
  const message = want ?? error.message;
  assert.notEqual(message, '');
  const { traceId } = error.responseDetails;
  assert.match(traceId, /^[0-9a-f]{32}$/);
  // Whether message is enumerable differs from one error to the next (V8 of Node
  // 20): a spread or JSON.stringify may leave it out.
  assert.deepEqual({ ...error, message: error.message }, {
    name: 'ForgeKvsError', // not ForgeKvsAPIError, which is why applications must go by the code
    message,
    code,
    packageVersion,
    responseDetails: {
      status,
      statusText: reasons[status],
      traceId,
      httpMethod: 'POST',
      httpPath: `/api/v1/${path}`,
      responseBodyLength: JSON.stringify({ code, message }).length,
    },
    context: {},
  });
}

// Errors of forge-facts that several tests meet.
const conflict = {
  status: 409, code: 'KEY_CONFLICT', path: 'set',
  message: 'Provided key already exists and cannot be overwritten',
};
const conditionFailed = {
  status: 400, code: 'CONDITIONAL_CHECK_FAILED', path: 'transaction',
  message: 'Request failed due to conditional check specified or optimistic locking',
};
const unprocessable = {
  status: 422, code: 'UNPROCESSABLE_ENTITY', path: 'transaction',
  message: 'Request cannot be processed due to one or more semantic errors',
};
const incorrectType = (property, type) => ({
  status: 400, code: 'INCORRECT_PROPERTY_TYPE', path: 'entity/set',
  message: `Data type for property "${property}" is defined as "${type}"`,
});

// race lets n acts go at once. It counts how each ended: by what it returned, or
// by the code and status of its error.
async function race(n, act) {
  const endings = await Promise.all(Array.from({ length: n }, async (_, i) => {
    try {
      return await act(i);
    } catch (error) {
      if (error.code === undefined) throw error;
      return `${error.code} ${error.responseDetails.status}`;
    }
  }));
  return endings.reduce((counts, ending) => ({ ...counts, [ending]: (counts[ending] ?? 0) + 1 }), {});
}

// barrier gives a function that returns when it has been called n times.
function barrier(n) {
  let open;
  const opened = new Promise((resolve) => { open = resolve; });
  return () => {
    if (--n === 0) open();
    return opened;
  };
}

// sent gives the calls that go through the hook while act runs.
async function sent(act) {
  const hook = globalThis.__forge_fetch__;
  const calls = [];
  globalThis.__forge_fetch__ = (meta, path, init) => {
    calls.push({ path, body: JSON.parse(init.body) });
    return hook(meta, path, init);
  };
  try {
    await act();
  } finally {
    globalThis.__forge_fetch__ = hook;
  }
  return calls;
}

// at lets act talk to another server.
async function at(url, act) {
  const usual = process.env.CONTEND_SIM_URL;
  process.env.CONTEND_SIM_URL = url;
  try {
    return await act();
  } finally {
    process.env.CONTEND_SIM_URL = usual;
  }
}

// answering lets act talk to a server that answers every request alike. It gives
// the requests.
async function answering({ status, headers, body }, act) {
  const requests = [];
  const server = http.createServer((request, response) => {
    requests.push({ url: request.url, headers: request.headers });
    request.resume().on('end', () => response.writeHead(status, headers).end(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await at(`http://127.0.0.1:${server.address().port}`, act);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return requests;
}

module.exports = {
  answering, at, barrier, conditionFailed, conflict, incorrectType, race, refused, sent, unprocessable,
};
