// Stands in for the platform's web trigger in tests: hands the requests of a
// loopback HTTP server to the function run of an app, and turns what it gives into
// HTTP.
//
//     node --require forge-shim.cjs host.mjs APP/src/index.js

import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const { run } = await import(pathToFileURL(resolve(process.argv[2])));

// headersOf gives the headers as they were written, each with its values.
function headersOf({ rawHeaders }) {
  const headers = {};
  for (let i = 0; i < rawHeaders.length; i += 2) (headers[rawHeaders[i]] ??= []).push(rawHeaders[i + 1]);
  return headers;
}

// triggerRequest gives a request as the platform documents it. The marker is a
// further member, as live requests carry them.
function triggerRequest(message, body) {
  const { pathname, searchParams } = new URL(message.url, 'http://localhost');
  const [, , , ...rest] = pathname.split('/'); // after /x1/ID
  return {
    method: message.method,
    path: pathname,
    userPath: rest.length > 0 ? `/${rest.join('/')}` : '',
    body,
    headers: headersOf(message),
    queryParameters: Object.fromEntries([...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)])),
    marker: 'contend-apptest',
  };
}

// isTriggerResponse tells whether the platform would take a result for a response.
function isTriggerResponse(result) {
  return (
    Number.isInteger(result?.statusCode) &&
    result.statusCode >= 200 &&
    result.statusCode <= 599 &&
    ['string', 'undefined'].includes(typeof result.body) &&
    Object.values(result.headers ?? {}).every((values) => Array.isArray(values) && values.every((v) => typeof v === 'string'))
  );
}

const server = createServer(async (message, response) => {
  const chunks = [];
  let result;
  try {
    for await (const chunk of message) chunks.push(chunk);
    result = await run(triggerRequest(message, Buffer.concat(chunks).toString()), {});
  } catch (error) {
    console.error(error);
  }
  if (!isTriggerResponse(result)) result = { statusCode: 500 };
  response.writeHead(result.statusCode, result.headers);
  response.end(result.body);
});
// A contender keeps its connection for as long as a run takes.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
