import * as assert from 'uvu/assert'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Directory } from '../../src/projections/directory.ts'
import { type Api, openApi } from '../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** While it is set, the directory of the node receives nothing, until a reader waits for it. */
let late: PromiseWithResolvers<void> | null = null
let store: EventStore | undefined
const { run, reach } = Directory.prototype
Directory.prototype.run = function (given, signal) {
  store = given
  const subscribe: EventStore['subscribe'] = async function* (options) {
    for await (const batch of given.subscribe(options)) {
      await late?.promise
      yield batch
    }
  }
  return run.call(this, Object.assign(Object.create(given) as EventStore, { subscribe }), signal)
}
Directory.prototype.reach = function (cursor, signal) {
  late?.resolve()
  return reach.call(this, cursor, signal)
}

const dataDir = tempDir()
const keys = await addEnvironment(dataDir, 'team', EVERYTHING, {
  'project:shop': ['read'],
  'build:shop': ['read'],
  'context:renamed': ['read'],
})
const server = await startServer({ dataDir })
const [api, limited] = keys.map((key) => openApi(server.url, key)) as [Api, Api]
await limited.send('GET', '/env') // from now on, the node knows the key without waiting
const { env_id } = await api.get<{ env_id: string }>('/env')

/** Creates a project as another node does, or gives it a new name. */
const onAnotherNode = async (project_id: string, name: string) => {
  assert.ok(store)
  late?.resolve()
  late = Promise.withResolvers()
  const projects = openAggregates(store).projects
  const stream = streamOf.project(project_id)
  const cause = { env_id, correlation_id: newId() }
  const { type, fence } = await projects.read(stream, (state) =>
    state.status === 'active'
      ? ({ type: 'RenameProject', fence: state.nameFence } as const)
      : ({ type: 'CreateProject', fence: -1 } as const),
  )
  await projects.handle(stream, { type, project_id, name, fence }, cause)
}

const reading = suite('a node whose directory lacks the newest facts of another node (I2)')

for (const path of ['/runs?project=', '/runs/stats?interval=hour&project='])
  reading(`knows a new project by its name: ${path}`, async () => {
    const [project_id, name] = [newId(), `p-${newId()}`]
    await onAnotherNode(project_id, name)
    const { status, text } = await api.send('GET', path + name)
    assert.is(status, 200, text)
  })

reading('admits a key whose permission names a new project', async () => {
  const project_id = newId()
  await onAnotherNode(project_id, 'shop')
  const { status, text } = await limited.send('GET', `/projects/${project_id}/builds`)
  assert.is(status, 200, text)
})

reading('admits a key whose permission names the new name of a project', async () => {
  const project_id = newId()
  await onAnotherNode(project_id, 'before')
  assert.is((await api.send('GET', `/projects/${project_id}`)).status, 200)
  await onAnotherNode(project_id, 'renamed')
  const { status, text } = await limited.send('GET', `/projects/${project_id}/context`)
  assert.is(status, 200, text)
})

reading('refuses a key whose permission does not name the project', async () => {
  const project_id = newId()
  await onAnotherNode(project_id, 'other')
  assert.is((await limited.refused('GET', `/projects/${project_id}/builds`)).status, 403)
})

reading.after(() => {
  late?.resolve()
  return server.stop()
})
reading.run()
