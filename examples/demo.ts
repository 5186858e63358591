import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ZipFile } from 'yazl'
import { buffer } from 'node:stream/consumers'
import { readConfig } from '../src/process/config.ts'
import { messageOf } from '../src/errors.ts'
import { silent } from '../src/logger.ts'
import { start } from '../src/start.ts'

/** Starts the service, deploys examples/hello through its public API, and prints commands to try. */
const hello = fileURLToPath(new URL('./hello/', import.meta.url))

/** The same content is the same zip, so that another start deploys nothing. */
const zip = async (dir: string): Promise<Buffer> => {
  const archive = new ZipFile()
  for (const name of readdirSync(dir).sort())
    archive.addBuffer(readFileSync(join(dir, name)), name, { mtime: new Date(2026, 0) })
  archive.end()
  return buffer(archive.outputStream)
}

/** The project exists on a further start, and has no deployed build on the first. */
const EXPECTED: readonly string[] = ['project_exists', 'not_found']

const main = async (): Promise<void> => {
  const service = await start(readConfig(), silent, { version: 'demo', git_sha: 'demo' })
  const { url, apiKey, operatorToken } = service
  process.once('SIGINT', () => void service.stop().then(() => process.exit(0)))
  process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)))

  const api = async (method: string, path: string, body?: RequestInit['body']): Promise<any> => {
    const reply = await fetch(`${url}/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${apiKey}` },
      ...(body && { body }),
    })
    const json = (await reply.json()) as { data?: unknown; error?: { code: string; message: string } }
    if (json.error && !EXPECTED.includes(json.error.code))
      throw new Error(`${method} ${path}: ${json.error.message}`)
    return json.data
  }
  await api('POST', '/projects', JSON.stringify({ name: 'hello' }))
  const file = await zip(hello)
  const hash = createHash('sha256').update(file).digest('hex')
  const deployed = await api('GET', '/projects/hello/builds/deployed')
  if (deployed?.hash !== hash) {
    const form = new FormData()
    form.set('hash', hash)
    form.set('file', new Blob([new Uint8Array(file)]), 'hello.zip')
    const { build_id } = await api('POST', '/projects/hello/builds', form)
    await api('POST', `/projects/hello/builds/${build_id}/deploy`)
  }
  const [webhook] = await api('GET', '/projects/hello/webhooks')

  process.stdout
    .write(`svc is ready: ${url}   dashboard: ${url}/ui   API docs: ${url}/docs   data: ${readConfig().dataDir}
Project "hello" is deployed from examples/hello. Your development API key, which also signs in to the dashboard:
  export SVC_KEY=${apiKey}
The pages of the operator ask for the operator token: ${operatorToken}

1. Publish an event, then see its run:
  curl -s ${url}/v1/events -H "Authorization: Bearer ${apiKey}" -d '{"event_type":"hello:said","event_data":{"name":"Ada"}}'; echo; curl -s "${url}/v1/runs?limit=1" -H "Authorization: Bearer ${apiKey}"; echo

2. Call a webhook; the function returns the reply:
  curl -s ${webhook.url} -d '{"name":"Ada"}'; echo

3. Publish and follow the stream live:
  curl -N ${url}/v1/streams/subscribe-with-event -H "Authorization: Bearer ${apiKey}" -H "Accept: text/event-stream" -d '{"event_type":"hello:said","event_data":{"name":"Ada"}}'

Ctrl-C stops the service and keeps the data. Delete the data directory to start from scratch.
`)
}

main().catch((error: unknown) => {
  process.stderr.write(`The demo could not start: ${messageOf(error)}\n`)
  process.exit(1)
})
