import * as assert from 'uvu/assert'
import type { BuildChanges } from '../../src/client/api.ts'
import { newId } from '../../src/ids.ts'
import { type BuildUpload, type DeployedBuild, type Files, upload } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startWithOther()
const { api, other } = server
await api.post('/projects', { name: 'shop' })
await other.post('/projects', { name: 'shop' })

const filesOf = (...lines: readonly string[]): Files => ({
  'm.js': [`import { fn } from 'svc'`, ...lines].join('\n'),
})
const plain = (name: string) => `export const ${name} = () => 1`
const onEvent = (type: string) => `export const on = fn({ 'on-event': '${type}' }, () => 1)`
/** Uploads a build; resolves with its path. */
const uploaded = async (files: Files): Promise<string> => {
  const { json } = await upload(api, 'shop', files)
  return `/projects/shop/builds/${(json as { data: BuildUpload }).data.build_id}`
}
const idIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

const comparing = suite('the changes of a build that is not deployed')

comparing('are all its functions, if no build is deployed', async () => {
  const first = await uploaded(filesOf(plain('kept'), plain('gone'), onEvent('a')))
  const added = ['m/gone', 'm/kept', 'm/on']
  assert.equal(await api.get<BuildChanges>(`${first}/changes`), {
    against: null,
    added,
    removed: [],
    changed: [],
  })
  await api.post(`${first}/deploy`)
  assert.equal((await api.get<BuildChanges>(`${first}/changes`)).added, [])
})

comparing('are those that its deployment then returns', async () => {
  const before = await uploaded(filesOf(plain('kept'), plain('gone'), onEvent('a')))
  await api.post(`${before}/deploy`)
  const after = await uploaded(filesOf(plain('kept'), plain('more'), onEvent('b')))
  const { against, ...changes } = await api.get<BuildChanges>(`${after}/changes`)
  assert.is(against, idIn(before))
  assert.equal(changes, { added: ['m/more'], removed: ['m/gone'], changed: ['m/on'] })
  assert.equal((await api.post<DeployedBuild>(`${after}/deploy`)).changes, changes)
})

comparing('are found for a list of functions over 64 KiB', async () => {
  const names = Array.from({ length: 1200 }, (_, i) => `${'f'.repeat(60)}${i}`)
  const many = await uploaded(filesOf(...names.map(plain)))
  assert.is((await api.get<BuildChanges>(`${many}/changes`)).added.length, names.length)
})

comparing('do not exist for builds of another project or environment', async () => {
  const build = idIn(await uploaded(filesOf(plain('one'))))
  await api.post('/projects', { name: 'second' })
  for (const [as, path] of [
    [api, `/projects/second/builds/${build}/changes`],
    [other, `/projects/shop/builds/${build}/changes`],
    [api, `/projects/shop/builds/${newId()}/changes`],
    [api, `/projects/none/builds/${build}/changes`],
  ] as const)
    assert.is((await as.refused('GET', path)).code, 'not_found')
})

comparing.after(() => server.stop())
comparing.run()
