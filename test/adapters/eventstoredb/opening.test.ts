import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { isAppError } from '../../../src/errors.ts'
import { failureOf } from '../../contracts/eventStore/facts.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { suite } from '../../support/suite.ts'

const opening = suite('EventStoreDB adapter: opening')

opening('names the setting of an invalid address', async () => {
  for (const url of ['esdb://', 'esdb://?tls=false', 'http://host', 'esdb://host?prefix=a%20b']) {
    const error = await failureOf(openEventStoreDb(url))
    assert.ok(isAppError(error, 'bad_request'), url)
    assert.match(error.message, /^SVC_EVENT_STORE: /)
  }
})

opening('an unreachable server is reported, with the setting and without the password', async () => {
  const error = await failureOf(openEventStoreDb('esdb://user:planted@127.0.0.1:1?tls=false'))
  assert.ok(isAppError(error, 'unavailable'))
  assert.match(error.message, /^SVC_EVENT_STORE: esdb:\/\/127\.0\.0\.1:1: /)
  assert.not.match(error.message, 'planted')
})

opening('a server that accepts connections and never replies is unavailable', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  assert.ok(
    isAppError(await failureOf(openEventStoreDb(`esdb://127.0.0.1:${port}?tls=false`)), 'unavailable'),
  )
  silent.close()
  for (const socket of sockets) socket.destroy()
})

opening('a version that is too old is reported with the required one', async () => {
  const standIn = await startStandIn()
  standIn.misbehave.beOld()
  const error = await failureOf(openEventStoreDb(standIn.url))
  assert.ok(isAppError(error, 'bad_request'))
  assert.match(error.message, /version 20\.10\.5 is too old: svc needs EventStoreDB 22\.10/)
  await standIn.stop()
})

opening.run()
