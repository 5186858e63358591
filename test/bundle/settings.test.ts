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

settings('refuse a default that no project can have as its name', () => {
  assert.match(refusal({ name: '.hidden' }), 'because the default is unsuitable; got ".hidden"')
})

settings('refuse a package.json that is not JSON, and a folder that does not exist', () => {
  const broken = writeProject({ 'package.json': '{' })
  assert.throws(() => readSettings(broken), /package\.json: /)
  assert.throws(() => readSettings(`${broken}/missing`), /FOLDER: expected a folder/)
})

settings.run()
