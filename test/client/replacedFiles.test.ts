import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

type Client = ReturnType<typeof createClient>

interface Context {
  server: TestServer
  client: Client
  /** A client whose requests each wait for this, and whose downloads get changed replies. */
  after(work: (isDownload: boolean) => unknown, change?: (reply: Response) => Response): Client
}

const files = suite<Context>('a file that changes between the requests for its metadata and its content')
files.before(async (context) => {
  const server = await startServer()
  const { url } = server
  const token = server.api.key
  const after: Context['after'] = (work, change = (reply) => reply) =>
    createClient({
      url,
      token,
      async fetch(target, init) {
        const isDownload = String(target).endsWith('/download')
        await work(isDownload)
        const reply = await fetch(target, init)
        return isDownload ? change(reply) : reply
      },
    })
  Object.assign(context, { server, client: createClient({ url, token }), after })
})
files.after(({ server }) => server.stop())

/** Does the work once, before the first download. */
const once = (work: () => Promise<unknown>) => {
  let done: Promise<unknown> | undefined
  return (isDownload: boolean) => (isDownload ? (done ??= work()) : undefined)
}

const read = async (client: Client, path: string) => {
  const { content, size, content_type } = await client.files.get(path)
  return [new TextDecoder().decode(content), size, content_type]
}

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error: unknown = await promise.catch((thrown: unknown) => thrown)
  assert.instance(error, ServiceError)
  return (error as ServiceError).code
}

files('has the metadata of the content that is read', async ({ client, after }) => {
  await client.files.put('a', 'first', { contentType: 'text/plain' })
  const replaced = once(() => client.files.put('a', 'the second', { contentType: 'text/csv' }))
  assert.equal(await read(after(replaced), 'a'), ['the second', 10, 'text/csv'])
})

files('is found when it was deleted and stored again', async ({ client, after }) => {
  await client.files.put('b', 'first')
  const again = once(async () => {
    await client.files.delete('b')
    await client.files.put('b', 'second')
  })
  assert.is((await read(after(again), 'b'))[0], 'second')
})

files('is not found when it was deleted', async ({ client, after }) => {
  await client.files.put('c', 'first')
  assert.is(await refusal(read(after(once(() => client.files.delete('c'))), 'c')), 'not_found')
})

files('is unavailable when it gets other content each time', async ({ client, after }) => {
  await client.files.put('d', 'first')
  let n = 0
  assert.is(
    await refusal(
      read(
        after(() => client.files.put('d', `content ${n++}`)),
        'd',
      ),
    ),
    'unavailable',
  )
})

for (const [what, etag] of [
  ['weakens', (before: string) => `W/${before}`],
  ['replaces', () => '"other"'],
  ['drops', () => null],
] as const)
  files(`is read behind a proxy that ${what} its ETag`, async ({ client, after }) => {
    await client.files.put('e', 'text')
    const change = (reply: Response): Response => {
      const headers = new Headers(reply.headers)
      const now = etag(headers.get('etag') ?? '')
      if (now === null) headers.delete('etag')
      else headers.set('etag', now)
      return new Response(reply.body, { status: reply.status, headers })
    }
    assert.is(
      (
        await read(
          after(() => {}, change),
          'e',
        )
      )[0],
      'text',
    )
  })
files.run()
