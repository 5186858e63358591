import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import { project } from '../../src/domain/project.ts'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { openLogger, silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { openFill } from '../../src/process/filling/fill.ts'
import type { Fill } from '../../src/projections/fill.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { exampleOf } from '../events/examples.ts'
import { freePort } from '../support/freePort.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { plantStored } from '../support/plantStored.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const at = '2026-05-01T10:00:00.000Z'
const metadata = { env_id: 'env', correlation_id: 'c' }
const newer = { ...metadata, v: 2 }
const forgotten = { type: 'RunForgotten', run_id: '1' }

type PlantedFact = readonly [event: object, metadata: object]

/** A log of these facts, each in a stream of its own, read by the projectors of this build. */
const projectedFrom = (...facts: readonly PlantedFact[]) => projectedIn(tempDir(), facts)

const projectedIn = async (
  dir: string,
  facts: readonly PlantedFact[],
  fillOf?: (engines: { readonly store: EventStore; readonly readModels: ReadModels }) => Fill,
) => {
  await openEventStore({ dir }).close()
  plantStored(
    dir,
    facts.map(([event, more], i) => [`s-${i}`, 0, `id-${i}`, at, event, more]),
  )
  const store = openEventStore({ dir })
  const readModels = openReadModels({ dir })
  const printed: string[] = []
  const reasons: string[] = []
  const projectors = new Projectors({
    store,
    readModels,
    logger: openLogger((line) => void printed.push(line)),
    onGivenUp: (reason) => void reasons.push(reason),
    ...(fillOf && { fill: fillOf({ store, readModels }) }),
  })
  const background = new AbortController()
  const running = projectors.run(background.signal)
  return {
    projectors,
    store,
    reason: () => until(() => reasons[0]),
    reasons,
    printed,
    async close() {
      background.abort()
      await running
      await readModels.close()
      await store.close()
    },
  }
}

const unprocessable = suite('a fact that this build cannot process')

unprocessable('of a newer version stops its read model, and is named', async () => {
  const { printed, reasons, close } = await projectedFrom(
    [exampleOf.ServiceKeyCreated, metadata],
    [exampleOf.ServiceKeyUsed, newer],
  )
  const named =
    'The fact ServiceKeyUsed v2, id id-1, revision 0 of s-1, cursor 0000000000000002 cannot be processed: this build knows versions up to 1'
  await until(() => reasons.length === 2 || undefined)
  assert.equal(reasons.toSorted(), [
    `The projector of service_keys@2 was stopped: ${named}`,
    `The watch over the catalogue was stopped: ${named}`,
  ])
  const lines = printed.filter((line) => line.includes('service_keys@2'))
  assert.is(lines.length, 1, 'it is logged once')
  assert.match(lines[0] ?? '', named)
  await close()
})

unprocessable('leaves every other read model at work', async () => {
  const { projectors, reason, store, close } = await projectedFrom(
    [exampleOf.ServiceKeyUsed, newer],
    [exampleOf.ProjectCreated, metadata],
  )
  await reason()
  const head = await store.head()
  const others = projectors.names.filter((name) => name !== 'service_keys@2')
  for (const name of others) await projectors.reach(name, head)
  assert.is(projectors.position('service_keys@2'), '')
  await close()
})

unprocessable('of an unknown type is named', async () => {
  const { reason, close } = await projectedFrom([forgotten, metadata])
  assert.is(
    await reason(),
    'The watch over the catalogue was stopped: The fact RunForgotten v1, id id-0, revision 0 of s-0, cursor 0000000000000001 cannot be processed: this build knows no such type',
  )
  await close()
})

unprocessable('of an unknown type is named while threads still fill read models', async () => {
  const dir = tempDir()
  const started: PlantedFact = [exampleOf.ProjectCreated, metadata]
  const { reason, close } = await projectedIn(dir, [started, [forgotten, metadata]], (engines) => {
    const fill = openFill({ dataDir: dir, ...engines, logger: silent, leastFacts: 1 })
    return async (projection, filling) => {
      await fill(projection, filling)
      if (!filling.signal.aborted) await once(filling.signal, 'abort') // none of them ends
    }
  })
  assert.is(
    await reason(),
    'The watch over the catalogue was stopped: The fact RunForgotten v1, id id-1, revision 0 of s-1, cursor 0000000000000002 cannot be processed: this build knows no such type',
  )
  await close()
})

unprocessable('because its fold throws is named', async () => {
  const { reason, close } = await projectedFrom([exampleOf.SessionCreated, { correlation_id: 'c' }])
  assert.match(
    await reason(),
    'The projector of sessions@1 was stopped: The fact SessionCreated v1, id id-0, revision 0 of s-0, cursor 0000000000000001 cannot be processed: Expected an env_id',
  )
  await close()
})

unprocessable('refuses commands of its stream by name', async () => {
  const dir = tempDir()
  await openEventStore({ dir }).close()
  plantStored(dir, [['project-p', 0, 'id-0', at, exampleOf.ProjectCreated, newer]])
  const store = openEventStore({ dir })
  const reasons: string[] = []
  const projects = new CommandHandler(store, project, (reason) => void reasons.push(reason))
  const rename = { type: 'RenameProject', project_id: 'p', name: 'x', fence: 0 } as const
  const error = await failureOf(projects.handle('project-p', rename, metadata))
  assert.ok(isAppError(error, 'internal_server_error'))
  assert.match(reasons[0] ?? '', 'The fact ProjectCreated v2, id id-0, revision 0 of project-p')
  assert.is((error as Error).message, reasons[0])
  await store.close()
})

unprocessable('because its decider throws refuses commands by name', async () => {
  const { store, close } = await projectedFrom([exampleOf.WorkerStarted, metadata])
  const broken = {
    initial: () => null,
    decide: () => [],
    evolve: () => {
      throw new TypeError('no such field')
    },
  }
  const reasons: string[] = []
  const handler = new CommandHandler(store, broken, (reason) => void reasons.push(reason))
  await failureOf(handler.handle('s-0', {}, metadata))
  assert.match(
    reasons[0] ?? '',
    /^The fact WorkerStarted v1, id id-0, .* cannot be processed: no such field$/,
  )
  await close()
})

unprocessable('because it belongs to another kind of stream refuses commands by name', async () => {
  const { store, close } = await projectedFrom([exampleOf.WorkerStarted, metadata])
  const reasons: string[] = []
  const {
    workers: _,
    admitChange: __,
    ...others
  } = openAggregates(store, (reason) => void reasons.push(reason))
  const kinds = Object.entries(others)
  for (const [kind, handler] of kinds) {
    await failureOf(handler.read('s-0', () => null))
    assert.match(reasons.pop() ?? `${kind} took it`, /^The fact WorkerStarted v1, .* does not belong in this/)
  }
  assert.is(kinds.length, 19)
  await close()
})

/** A directory in which a service ran, with one more fact in its log. */
const plantedDir = async (event: object, more: object): Promise<string> => {
  const dataDir = tempDir()
  await (await startServer({ dataDir })).stop()
  plantStored(dataDir, [['s-0', 0, newId(), at, event, more]])
  return dataDir
}

const readiness = suite('/readyz', { timeoutMs: 60_000 })

const reasonAt = (url: string): Promise<string> =>
  until(async () => {
    const { status, json } = await openApi(url, '').send('GET', `${url}/readyz`)
    const { message } = (json as { error?: { message: string } }).error ?? { message: '' }
    return status === 503 && message.includes('cannot be processed') ? message : undefined
  })

readiness('names a fact of an unknown type; what does not depend on it still works', async () => {
  const dataDir = await plantedDir(forgotten, metadata)
  const { api, url, output, stop } = await startServer({ dataDir })
  assert.match(await reasonAt(url), 'The fact RunForgotten v1')
  assert.ok(output.some((line) => line.includes('The fact RunForgotten v1')))
  await api.post('/projects', { name: 'shop' })
  assert.equal(
    (await api.page<{ name: string }>('/projects')).data.map(({ name }) => name),
    ['shop'],
  )
  await stop()
})

readiness('names a fact of a newer version while the node starts', async () => {
  const dataDir = await plantedDir(exampleOf.ProjectRenamed, newer)
  const port = await freePort()
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    env: { ...installation(dataDir), PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const output: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text))
  const url = `http://127.0.0.1:${port}`
  await until(() => fetch(`${url}/healthz`).catch(() => undefined), { timeoutMs: 40_000 })
  const named =
    /The fact ProjectRenamed v2, id [-0-9a-f]{36}, revision 0 of s-0, cursor \d{16} cannot be proc/
  assert.match(await reasonAt(url), named)
  await until(() => named.test(output.join(''))) // by a pipe, which the reply may overtake
  child.kill('SIGKILL')
  await once(child, 'exit')
})

unprocessable.run()
readiness.run()
