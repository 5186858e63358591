import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createClient } from 'svc/client'

const { SVC_URL = 'http://127.0.0.1:8080', SVC_KEY, PORT = '3000' } = process.env
if (!SVC_KEY) throw new Error('SVC_KEY: expected an API key of the service')

/** The key stays here. */
const client = createClient({ url: SVC_URL, token: SVC_KEY })

/** Publishes the question. The page gets the stream of its answer, and a session that can only read this stream. */
const ask = async (request: IncomingMessage) => {
  const question = (await text(request)).slice(0, 1000)
  const { stream_id } = await client.send('question:asked', { question })
  const { token } = await client.request('POST /v1/sessions', {
    body: { permissions: { [`stream:${stream_id}`]: ['read'] }, expires_in: 600 },
  })
  return { url: SVC_URL, stream_id, token }
}

/** The page, and the modules of the client: browsers need no bundler for them. */
const fileOf = (path: string): URL | null => {
  if (path === '/') return new URL('page/index.html', import.meta.url)
  if (path === '/page.js') return new URL('page/page.js', import.meta.url)
  const [, module] = /^\/svc\/(\w+\.js)$/.exec(path) ?? []
  return module ? new URL(module, import.meta.resolve('svc/client')) : null
}

const server = createServer(async (request, response) => {
  try {
    const { pathname } = new URL(request.url ?? '/', 'http://page')
    if (request.method === 'POST' && pathname === '/ask') {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(await ask(request)))
      return
    }
    const file = request.method === 'GET' ? fileOf(pathname) : null
    if (!file) return void response.writeHead(404).end()
    const type = file.pathname.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8'
    response.setHeader('content-type', type).end(await readFile(fileURLToPath(file)))
  } catch (error) {
    console.error(error)
    response.writeHead(500).end()
  }
})

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  console.log(`The page: http://localhost:${typeof address === 'object' ? address?.port : PORT}`)
})
