// Serves one PGlite to many connections: node server.mjs PORT
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

const db = await PGlite.create()
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: Number(process.argv[2]), maxConnections: 50 })
await server.start()
