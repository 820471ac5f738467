'use strict';
// Lets unmodified @forge/kvs and @forge/sql talk to "contend sim serve":
//
//     CONTEND_SIM_URL=http://127.0.0.1:7077 node --require ./forge-shim.cjs my-test.js
//
// On the platform the runtime provides this hook, and the packages look it up at
// each call. An answer of a simulation sets globalThis.__contend_simulated__.

const services = ['kvs', 'sql'];

globalThis.__forge_fetch__ = async function (meta, path, init = {}) {
  if (!services.includes(meta?.type)) {
    throw new Error(`forge-shim: no local server for ${path}: its type is ${meta?.type}, not ${services.join(' or ')}`);
  }
  const server = (process.env.CONTEND_SIM_URL || 'http://127.0.0.1:7077').replace(/\/+$/, '');
  const headers = new Headers(init.headers);
  headers.delete('host'); // the platform's, not the local server's
  const response = await fetch(`${server}/${meta.type}${path}`, { ...init, headers });
  if (response.headers.get('x-contend-simulated') === 'true') {
    globalThis.__contend_simulated__ = true;
  }
  return response;
};
