import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { BSON } from 'mongodb'
import * as assert from 'uvu/assert'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { type AppError, isAppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { together } from '../support/together.ts'

const PASSWORD = 'hunter2%2Fsecret'

const openings = suite('MongoDB read models: opening')
/** For openings that end by a time limit. Those that need a reply within the 2 s of the driver run alone. */
const opening = together(openings)

/** Passes the URL of a server with these replies to `test`, and closes the server afterwards. */
const listening = async (answer: (socket: Socket) => void, test: (url: string) => Promise<void>) => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    answer(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await test(`mongodb://svc:${PASSWORD}@127.0.0.1:${(server.address() as AddressInfo).port}/models`)
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

/** Returns the error of opening. It must name the setting in one line without the password. */
const refusal = async (url: string): Promise<AppError> => {
  const error: unknown = await openMongoReadModels({ url }).then(
    (readModels) => readModels.close(),
    (thrown: unknown) => thrown,
  )
  if (!isAppError(error)) throw new Error('Expected an AppError', { cause: error })
  assert.match(error.message, /^SVC_READ_MODELS: [^\n]+$/)
  let cause: unknown = error
  for (; cause instanceof Error; cause = cause.cause) {
    assert.not.match(`${cause.message}\n${cause.stack}`, /hunter2/)
  }
  return error
}

/**
 * A server with MongoDB's wire protocol that gives each command the reply of `answers`; null means silence. The first
 * greeting is an OP_QUERY (2004), all later messages are OP_MSG (2013).
 */
const speaking =
  (answers: (command: BSON.Document) => BSON.Document | null) =>
  (socket: Socket): void => {
    let buffered = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk])
      while (buffered.length >= 4 && buffered.length >= buffered.readInt32LE(0)) {
        const message = buffered.subarray(0, buffered.readInt32LE(0))
        buffered = buffered.subarray(message.length)
        const isQuery = message.readInt32LE(12) === 2004
        const start = isQuery ? message.indexOf(0, 20) + 9 : 21
        const command = BSON.deserialize(message.subarray(start, start + message.readInt32LE(start)))
        const answer = answers(command)
        if (!answer) continue
        const body = BSON.serialize({ ok: 1, ...answer })
        const head = Buffer.alloc(isQuery ? 36 : 21)
        head.writeInt32LE(head.length + body.length, 0)
        head.writeInt32LE(message.readInt32LE(4), 8)
        head.writeInt32LE(isQuery ? 1 : 2013, 12)
        if (isQuery) head.writeInt32LE(1, 32) // one document follows
        socket.write(Buffer.concat([head, body]))
      }
    })
  }

const hello = (maxWireVersion: number): BSON.Document => ({
  isWritablePrimary: true,
  ismaster: true,
  minWireVersion: 0,
  maxWireVersion,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
})
const isHello = (command: BSON.Document) =>
  'hello' in command || 'ismaster' in command || 'isMaster' in command
const WIRE_7_0 = 21
const WIRE_4_2 = 8

opening('a server that refuses connections is unavailable', async () => {
  const { code, message } = await refusal(`mongodb://svc:${PASSWORD}@127.0.0.1:1/models`)
  assert.is(code, 'unavailable')
  assert.match(message, '127.0.0.1:1')
  assert.match(message, 'database models')
})

opening('a server that never replies is unavailable', () =>
  listening(
    () => {},
    async (url) => assert.is((await refusal(url)).code, 'unavailable'),
  ),
)

opening('a server that replies to the handshake only is unavailable', () =>
  listening(
    speaking((command) => (isHello(command) ? hello(WIRE_7_0) : null)),
    async (url) => {
      const { code } = await refusal(url.replace(`svc:${PASSWORD}@`, ''))
      assert.is(code, 'unavailable')
    },
  ),
)

openings('a wrong password is a bad request', () =>
  listening(
    speaking((command) =>
      isHello(command) ? hello(WIRE_7_0) : { ok: 0, code: 18, errmsg: 'Authentication failed.' },
    ),
    async (url) => {
      const { code, message } = await refusal(url)
      assert.is(code, 'bad_request')
      assert.match(message, 'wrong user or password')
    },
  ),
)

openings('a user without write permission is a bad request', () =>
  listening(
    speaking((command) =>
      isHello(command) ? hello(WIRE_7_0) : { ok: 0, code: 13, errmsg: 'not authorized on models' },
    ),
    async (url) => {
      const { code, message } = await refusal(url.replace(`svc:${PASSWORD}@`, ''))
      assert.is(code, 'bad_request')
      assert.match(message, 'readWrite')
    },
  ),
)

openings('a server older than 4.4 is a bad request', () =>
  listening(
    speaking(() => hello(WIRE_4_2)),
    async (url) => {
      const { code, message } = await refusal(url)
      assert.is(code, 'bad_request')
      assert.match(message, '4.4')
    },
  ),
)

for (const [what, url] of [
  ['another scheme', `redis://svc:${PASSWORD}@127.0.0.1:1/models`],
  ['no host', `mongodb://svc:${PASSWORD}@/models`],
  ['an unknown option', `mongodb://svc:${PASSWORD}@127.0.0.1:1/models?sessions=none`],
  ['an @ that is not encoded', 'mongodb://svc:hunter2@secret@127.0.0.1:1/models'],
  ['a % that is not encoded', 'mongodb://svc:hunter2%@127.0.0.1:1/models'],
  ['an invalid port', `mongodb://svc:${PASSWORD}@127.0.0.1:port/models`],
  ['an invalid database name', `mongodb://svc:${PASSWORD}@127.0.0.1:1/my%20models`],
] as const) {
  opening(`a URL with ${what} is a bad request`, async () => {
    assert.is((await refusal(url)).code, 'bad_request')
  })
}

opening('the database is svc when the URL names none', async () => {
  const urls = ['mongodb://127.0.0.1:1', 'mongodb://127.0.0.1:1/', 'mongodb://127.0.0.1:1/?appName=x']
  for (const { message } of await Promise.all(urls.map(refusal))) assert.match(message, 'database svc')
})

openings.run()
