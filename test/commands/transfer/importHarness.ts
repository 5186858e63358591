import { buffer } from 'node:stream/consumers'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { exportEnv } from '../../../src/commands/transfer/exportEnv.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { RecordWriter, recordsIn } from '../../../src/commands/transfer/records.ts'
import { isOf } from '../../../src/events/event.ts'
import { newId } from '../../../src/ids.ts'
import { TransferKey } from '../../../src/secrets/transferKey.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import type { openCommands } from '../openCommands.ts'
import type { plantEnv } from '../plantEnv.ts'

export type Line = Record<string, unknown>
export interface Entry {
  line: Line
  bytes: Buffer
}

export type Node = Awaited<ReturnType<typeof openCommands>>
export type Tenant = Awaited<ReturnType<typeof plantEnv>>

export const transferKey = new TransferKey(Buffer.alloc(32, 5))
export const cause = { correlation_id: newId(), actor: 'operator' }

/** Does what a worker does for an event without handlers. */
export const handle = async (
  node: Node,
  { event }: { readonly event: { readonly stream_id: string } },
): Promise<void> => {
  for await (const fact of node.deps.store.read(`stream-${event.stream_id}`))
    if (isOf(fact, 'EventPublished')) await dispatchEvent(node.deps, { published: fact, worker_id: newId() })
}

/** Gives the environment a project with a variable, an event and a file. Resolves with the id of the project. */
export const fill = async (node: Node, { caller }: Tenant): Promise<string> => {
  const { project_id } = await createProject(node.deps, { name: 'shop' }, caller)
  await node.views.settled()
  await createVariable(node.deps, { project: 'shop', key: 'KEY', value: 'secret' }, caller)
  await handle(
    node,
    await publishEvent(node.deps, { event_type: 'asked', event_data: { n: 1 }, source: 'api' }, caller),
  )
  const content = async function* () {
    yield Buffer.from('content')
    await Promise.resolve()
  }
  await storeFile(
    node.deps,
    { path: 'a.txt', content_type: 'text/plain', run_id: null, rights: null, announced: 7, content },
    caller.cause,
  )
  await node.views.settled()
  return project_id
}

/** The records of an export, which a test may change. */
export const entriesOf = async (node: Node, { env_id }: Tenant): Promise<Entry[]> => {
  const entries: Entry[] = []
  const records = recordsIn(await exportEnv(node.deps, { env_id, transferKey }))
  for await (const { line, bytes } of records) {
    const { sum: _, ...own } = line
    entries.push({ line: own, bytes: await buffer(bytes) })
  }
  return entries
}

/** The content of a file with these records. */
export async function* fileOf(
  entries: readonly Entry[],
  writer: RecordWriter = new RecordWriter(),
): AsyncGenerator<Uint8Array> {
  for (const { line, bytes } of entries) {
    yield writer.line(line)
    if (bytes.length > 0) yield* [writer.bytes(bytes), writer.endOfBytes()]
  }
  await Promise.resolve()
}

export const importInto = (node: Node, entries: readonly Entry[], key = transferKey) =>
  importEnv(node.deps, { content: fileOf(entries), transferKey: key }, cause)

/** The first record of the file with a fact of this type. */
export const entryOf = (entries: readonly Entry[], type: string): Entry => {
  const found = entries.find(({ line }) => (line['event'] as Line | undefined)?.['type'] === type)
  if (!found) throw new Error(`The file has no ${type}`)
  return found
}

export const factOf = (entries: readonly Entry[], type: string): Line => entryOf(entries, type).line
export const eventOf = (entries: readonly Entry[], type: string): Line =>
  factOf(entries, type)['event'] as Line
