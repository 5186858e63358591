import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readSettings } from '../../src/bundle/settings.ts'
import { writeProject } from '../support/project.ts'
import { suite } from '../support/suite.ts'

const settings = suite('the settings of a project')

/** The settings of a project with this package.json. */
const read = (manifest: object, files: Readonly<Record<string, string>> = { 'src/a.ts': '' }) =>
  readSettings(writeProject({ 'package.json': JSON.stringify(manifest), ...files }))

const refusal = (manifest: object): string => {
  try {
    read(manifest)
  } catch (error) {
    return (error as Error).message
  }
  return 'accepted'
}

settings('have defaults: the name of the package, the folder src, and the file .env.svc', () => {
  const { project, src, assets, secrets } = read({ name: '@acme/orders' })
  assert.equal([project, src, assets, secrets], ['orders', 'src', [], null])
  assert.is(read({ name: 'a' }, { '.env.svc': 'A=1' }).secrets, '.env.svc')
  assert.is(read({ name: 'a' }, { 'a.ts': '' }).src, '.')
  assert.match(readSettings(writeProject({ 'a.ts': '' })).project, /^svc-test-/)
})

settings('are those of package.json', () => {
  const svc = { project: 'shop', src: './code/', assets: ['templates/**'], secrets: 'secrets.env' }
  const { folder, ...given } = read({ name: 'x', svc }, { 'code/a.ts': '', 'secrets.env': '' })
  assert.match(folder, /^\//)
  assert.equal(given, { project: 'shop', src: 'code', assets: ['templates/**'], secrets: 'secrets.env' })
})

for (const [svc, message] of [
  [{ asets: [] }, 'svc.asets is unknown: did you mean assets?'],
  [{ minify: true }, 'svc.minify is unknown: expected project, src, assets, secrets'],
  [{ project: 'a b' }, 'svc.project: expected a name of at most 63'],
  [{ src: 'lib' }, 'svc.src: expected a folder of the project; got "lib"'],
  [{ src: '../other' }, 'svc.src: expected a folder of the project'],
  [{ assets: ['../**'] }, 'svc.assets: expected a list of patterns inside of svc.src'],
  [{ assets: 7 }, 'svc.assets: expected a list of patterns'],
  [{ secrets: '/etc/passwd' }, 'svc.secrets: expected a file of the project'],
  [[], 'svc: expected an object with project, src, assets, secrets'],
] as const)
  settings(`refuse ${JSON.stringify(svc)}`, () => assert.match(refusal({ name: 'a', svc }), message))

for (const [name, project] of [
  ['@acme/.Hidden', 'hidden'],
  ['My Shop (Zürich)', 'my-shop-zurich'],
  ['x'.repeat(70), 'x'.repeat(63)],
  [`${'x'.repeat(62)} y`, 'x'.repeat(62)],
] as const)
  settings(`have a name for the project from ${name}`, () => assert.is(read({ name }).project, project))

settings('have a name for the project from a folder of any name', () => {
  const folder = join(writeProject({ 'neue Aufträge/a.ts': '' }), 'neue Aufträge')
  assert.is(readSettings(folder).project, 'neue-auftrage')
})

settings('refuse a default without a letter or digit that a project can have', () => {
  const name = String.fromCodePoint(0x6ce8, 0x6587)
  assert.match(
    refusal({ name }),
    `package.json: svc.project: expected a name of at most 63 letters, digits, ".", "_" and "-" that begins with a letter or digit, because ${JSON.stringify(name)} gives none; got nothing`,
  )
})

settings('refuse a package.json that is not JSON, and a folder that does not exist', () => {
  const broken = writeProject({ 'package.json': '{' })
  assert.throws(() => readSettings(broken), /package\.json:1:2: /)
  assert.throws(() => readSettings(`${broken}/missing`), /FOLDER: expected a folder/)
})

settings.run()
