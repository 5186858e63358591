import * as assert from 'uvu/assert'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { deleteVariable } from '../../../src/commands/context/deleteVariable.ts'
import { destroyDataKeys } from '../../../src/commands/dataKeys/destroyDataKeys.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { readVariable } from '../../../src/commands/context/readVariable.ts'
import { rotateDataKeys } from '../../../src/commands/dataKeys/rotateDataKeys.ts'
import { updateVariable } from '../../../src/commands/context/updateVariable.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const operator = { correlation_id: newId() }
await createOrg(deps, { slug: 'acme', plan: 'pro' }, operator)
const { env_id } = await createEnv(deps, { org: 'acme', name: 'dev' }, operator)
const caller = callerOf(env_id)
const newProject = async (): Promise<string> =>
  (await createProject(deps, { name: `p-${newId()}` }, caller)).project_id
const create = (project: string, key: string, value: string) =>
  createVariable(deps, { project, key, value }, caller)
const update = (project: string, key: string, value: string) =>
  updateVariable(deps, { project, key, value }, caller.cause)
const read = (project_id: string, key: string) => readVariable(deps, { env_id, project_id, key })

const variables = suite('context variables')

for (const key of ['', '1a', '-a', '.a', 'a b', 'a/b', 'ü', 'a\n', 'a'.repeat(129)])
  variables(`cannot have the key ${JSON.stringify(key).slice(0, 20)}`, async () => {
    const project = await newProject()
    const { message } = await refusedWith('bad_request', () => create(project, key, 'planted'))
    assert.ok(message.startsWith('key: ') && !message.includes('planted'))
  })

for (const key of ['a', '_', 'A.b_c-9', 'a'.repeat(128)])
  variables(`can have the key ${key.slice(0, 20)}`, async () => {
    const project = await newProject()
    await create(project, key, 'x')
    assert.is(await read(project, key), 'x')
  })

variables('contain any text of up to 32 KiB', async () => {
  const project = await newProject()
  for (const [i, value] of ['', 'Grüße 👋 \u0000\n"', 'x'.repeat(32 << 10), 'ü'.repeat(16 << 10)].entries()) {
    await create(project, `K${i}`, value)
    assert.is(await read(project, `K${i}`), value)
  }
  for (const value of ['x'.repeat((32 << 10) + 1), 'ü'.repeat((16 << 10) + 1)])
    for (const refused of [() => create(project, 'LONG', value), () => update(project, 'K0', value)])
      assert.ok((await refusedWith('bad_request', refused)).message.startsWith('value: '))
})

variables('have one value per key of a project, even when created at the same time', async () => {
  const [one, two] = [await newProject(), await newProject()]
  const settled = await Promise.allSettled([1, 2, 3, 4].map((n) => create(one, 'KEY', `value ${n}`)))
  assert.is(settled.filter(({ status }) => status === 'fulfilled').length, 1)
  const { message } = await refusedWith('context_exists', () => create(one, 'KEY', 'planted'))
  assert.not.ok(message.includes('planted'))
  await create(two, 'KEY', 'of two')
  assert.is(await read(two, 'KEY'), 'of two')
})

variables('are named with their project by id or name', async () => {
  const name = `named-${newId()}`
  const { project_id } = await createProject(deps, { name }, caller)
  assert.is((await create(name, 'KEY', 'x')).project_id, project_id)
  await update(project_id, 'KEY', 'y')
  assert.is(await read(project_id, 'KEY'), 'y')
})

variables('of another environment do not exist (I7)', async () => {
  const project = await newProject()
  await create(project, 'KEY', 'x')
  const other = callerOf(newId())
  const refused = [
    () => createVariable(deps, { project, key: 'K2', value: 'x' }, other),
    () => updateVariable(deps, { project, key: 'KEY', value: 'x' }, other.cause),
    () => deleteVariable(deps, { project, key: 'KEY' }, other.cause),
  ]
  for (const command of refused) await refusedWith('not_found', command)
  assert.is(await read(project, 'KEY'), 'x')
})

variables('are not found after their deletion, and the key is free', async () => {
  const project = await newProject()
  await create(project, 'KEY', 'old')
  await deleteVariable(deps, { project, key: 'KEY' }, caller.cause)
  await refusedWith('not_found', () => read(project, 'KEY'))
  await refusedWith('not_found', () => update(project, 'KEY', 'x'))
  await refusedWith('not_found', () => deleteVariable(deps, { project, key: 'KEY' }, caller.cause))
  await create(project, 'KEY', 'new')
  assert.is(await read(project, 'KEY'), 'new')
})

variables('are stored sealed only (I6)', async () => {
  const project = await newProject()
  await create(project, 'KEY', 'planted one')
  await update(project, 'KEY', 'planted two')
  const facts = await Array.fromAsync(node.store.read(`context-${project}`))
  assert.is(facts.length, 2)
  assert.not.ok(JSON.stringify(facts).includes('planted'))
})
variables.run()

const keys = suite('the data keys of an environment')

keys('seal every variable again when they are rotated, without a change of value', async () => {
  const project = await newProject()
  await create(project, 'A', 'first')
  const before = await rotateDataKeys(deps, { env_id }, operator)
  await create(project, 'B', 'second')
  const after = await rotateDataKeys(deps, { env_id }, operator)
  assert.is.not(after.key_id, before.key_id)
  assert.is(after.resealed, before.resealed + 1)
  assert.equal([await read(project, 'A'), await read(project, 'B')], ['first', 'second'])
})

keys('lose no update that is made during a rotation', async () => {
  const project = await newProject()
  await create(project, 'BUSY', 'value 0')
  const write = async () => {
    for (let n = 1; n <= 20; n++) await update(project, 'BUSY', `value ${n}`)
  }
  const rotate = () => rotateDataKeys(deps, { env_id }, operator)
  await Promise.all([write(), rotate(), rotate(), rotate()])
  assert.is(await read(project, 'BUSY'), 'value 20')
})

keys('erase the secrets when they are destroyed; new values can follow', async () => {
  const project = await newProject()
  await create(project, 'DOOMED', 'x')
  await destroyDataKeys(deps, { env_id }, operator)
  await refusedWith('not_found', () => read(project, 'DOOMED'))
  assert.is((await rotateDataKeys(deps, { env_id }, operator)).resealed, 0)
  await update(project, 'DOOMED', 'new')
  assert.is(await read(project, 'DOOMED'), 'new')
})

keys('are rotated for all projects, also if one has lost its key', async () => {
  const [lost, damaged, kept] = [await newProject(), await newProject(), await newProject()]
  for (const project of [lost, damaged, kept]) await create(project, 'A', 'first')
  const keysIn = (project: string) => Array.fromAsync(node.blobs.list(`keys/${env_id}/${project}/`))
  for (const { key } of await keysIn(lost)) await node.blobs.remove(key)
  for (const { key } of await keysIn(damaged)) await node.blobs.put(key, Buffer.from('other'))
  const { message } = await refusedWith('unavailable', () => rotateDataKeys(deps, { env_id }, operator))
  for (const [project, state] of [
    [lost, 'missing'],
    [damaged, 'damaged'],
  ] as const) {
    const name = (await node.views.projects.get(project))?.name
    assert.match(message, new RegExp(`${name}: A \\(The data key keys/${env_id}/${project}/\\S+ is ${state}`))
  }
  assert.is((await keysIn(kept)).length, 2)
  assert.is(await read(kept, 'A'), 'first')

  for (const project of [lost, damaged]) await update(project, 'A', 'new')
  await rotateDataKeys(deps, { env_id }, operator)
  assert.is(await read(lost, 'A'), 'new')
})

keys('are refused for an unknown environment', async () => {
  const unknown = { env_id: newId() }
  await refusedWith('not_found', () => rotateDataKeys(deps, unknown, operator))
  await refusedWith('not_found', () => destroyDataKeys(deps, unknown, operator))
})
keys.after(() => node.close())
keys.run()
