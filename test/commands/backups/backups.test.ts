import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { Backups } from '../../../src/commands/backups/backups.ts'
import { RETENTION_GROUP } from '../../../src/commands/orgs/renewRetention.ts'
import { rotateMasterKey } from '../../../src/commands/installation/rotateMasterKey.ts'
import { rewrapKeys } from '../../../src/commands/installation/rewrapKeys.ts'
import { isAppError } from '../../../src/errors.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { facts } from '../../contracts/eventStore/facts.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import {
  cause,
  closing,
  type Context,
  never,
  NEW,
  OLD,
  opening,
  refusal,
  startNode,
} from '../installation/masterKeyNode.ts'

const quiet = { info() {} }

const backups = suite<Context>('backups in progress')
backups.before.each(opening)
backups.after.each(closing)

const openBackups = async (context: Context, options?: { idleMs: number }) => {
  const node = await startNode(context, OLD)
  return { node, backups: new Backups({ ...context, ...node, logger: quiet }, options) }
}

backups('read the blobs of their position until they end', async (context) => {
  const { backups: open } = await openBackups(context)
  await context.blobs.put('files/a', Buffer.from('content'))
  const { backup_id } = await open.begin()
  await context.blobs.remove('files/a')
  const request = new AbortController()
  const backup = open.use(backup_id, request.signal)
  assert.is((await buffer(await backup.blobs.get('files/a'))).toString(), 'content')
  request.abort()
  await open.end(backup_id)
  await open.end(backup_id) // a repetition is no error
  assert.throws(
    () => open.use(backup_id, never),
    (error: unknown) => isAppError(error, 'not_found'),
  )
})

backups('keep the end of each stream in the log until they end', async (context) => {
  const { backups: open } = await openBackups(context)
  const { store } = context
  await store.append('gone', facts('env', 2), 'none')
  const { backup_id } = await open.begin()
  await store.append('gone', facts('env', 1), 1)
  await store.expire('gone', 0)
  await until(() => store.isExpired('gone'))
  assert.is(await store.scavenge?.(), 1)
  await open.end(backup_id)
  assert.is(await store.scavenge?.(), 2)
})

backups('do not contain the position of the group that sets retentions', async (context) => {
  const { backups: open } = await openBackups(context)
  const ending = new AbortController()
  for (const group of [RETENTION_GROUP, 'other']) {
    for await (const { ack } of context.store.consume(group, { signal: ending.signal })) {
      ack()
      break
    }
  }
  const { consumers, backup_id } = await open.begin()
  const groups = consumers.map(({ group }) => group)
  assert.ok(groups.includes('other'))
  assert.not.ok(groups.includes(RETENTION_GROUP))
  await open.end(backup_id)
})

backups('end by themselves when no request uses them', async (context) => {
  const { backups: open } = await openBackups(context, { idleMs: 20 })
  await context.blobs.put('files/a', Buffer.from('content'))
  const { backup_id } = await open.begin()
  const request = new AbortController()
  const backup = open.use(backup_id, request.signal)
  await context.blobs.remove('files/a')
  await delay(100)
  assert.is((await buffer(await backup.blobs.get('files/a'))).toString(), 'content') // a request uses it
  request.abort()
  await until(() =>
    backup.blobs.get('files/a').then(
      (stream) => void stream.destroy(),
      (error: unknown) => isAppError(error, 'not_found'),
    ),
  )
  assert.throws(() => open.use(backup_id, never))
})

backups('end by themselves after a request whose client left before it was served', async (context) => {
  const { backups: open } = await openBackups(context, { idleMs: 20 })
  const { backup_id } = await open.begin()
  open.use(backup_id, AbortSignal.abort())
  await until(
    () => {
      try {
        return void open.use(backup_id, AbortSignal.abort())
      } catch (error) {
        return isAppError(error, 'not_found')
      }
    },
    { everyMs: 60 },
  )
})

backups('make room for a new one: the one that was not used for the longest time ends', async (context) => {
  const { backups: open } = await openBackups(context)
  const ids: string[] = []
  for (let n = 0; n < 17; n++) ids.push((await open.begin()).backup_id)
  assert.throws(() => open.use(ids[0] ?? '', never))
  for (const id of ids.slice(1)) open.use(id, AbortSignal.abort())
})

backups('are refused while the master key is replaced, and do not complete after that', async (context) => {
  await startNode(context, OLD)
  const node = await startNode(context, NEW, OLD)
  const open = new Backups({ ...context, ...node, logger: quiet })
  const { backup_id } = await open.begin()
  await rotateMasterKey(node, {}, cause)
  assert.match(await refusal(open.begin()), 'The master key is being replaced')
  await rewrapKeys(node, never)
  assert.match(await refusal(open.complete(backup_id)), 'The master key is being replaced')
  const after = await open.begin()
  await open.complete(after.backup_id)
})

backups('are refused on engines that are not embedded', async (context) => {
  const node = await startNode(context, OLD)
  const store = Object.create(context.store, { storedLog: { value: undefined } }) as EventStore
  const open = new Backups({ ...context, ...node, store, logger: quiet })
  assert.match(await refusal(open.begin()), 'back up external engines with their own tools')
})
backups.run()
