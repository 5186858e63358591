import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { cli, cliJson } from '../support/cli.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The errors of the compiler of TypeScript about a project; `svc` is this checkout. */
const compiled = (folder: string): Promise<string> =>
  new Promise((resolve) => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node']
    const args = [tsc, '-p', folder, '--customConditions', 'svc-checkout', ...types]
    execFile(process.execPath, args, (_, out) => resolve(out))
  })

/** Creates a project with `svc init` that can import `svc`. */
const created = async (): Promise<string> => {
  const folder = join(tempDir(), 'My Orders')
  await cliJson(['init', folder])
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/svc'))
  return folder
}

const modeOf = (path: string): number => statSync(path).mode & 0o777

const test = suite('svc init and svc types', { timeoutMs: 120_000 })

test('create a project and the types of its names, which the compiler checks', async () => {
  const folder = await created()
  const first = await cliJson<{ functions: string[]; events: string[]; changed: boolean }>(['types', folder])
  assert.equal(first, {
    file: join(folder, 'svc.gen.d.ts'),
    changed: true,
    functions: ['hello/add', 'hello/onHello'],
    events: ['hello:said'],
  })
  assert.is((await cliJson<typeof first>(['types', folder])).changed, false)
  const use = (code: string) =>
    writeFileSync(
      join(folder, 'src/_use.ts'),
      `import { run, send } from 'svc'\nexport const use = async () => {\n${code}\n}\n`,
    )
  use(
    `await send('hello:said', { name: 'Ada' })\nconst sum: number = await run('hello/add', 1, 2)\nreturn sum`,
  )
  assert.is(await compiled(folder), '')
  for (const [wrong, expected] of [
    [`await send('hello:sad', { name: 'Ada' })`, /hello:sad/],
    [`await send('hello:said', { nam: 'Ada' })`, /nam/],
    [`await run('hello/ad', 1, 2)`, /hello\/ad/],
    [`await run('hello/add', 1, 'two')`, /string/],
  ] as const) {
    use(wrong)
    assert.match(await compiled(folder), expected)
  }
})

test('give files the modes of the umask of the user, as an editor does', async () => {
  const before = process.umask(0o027)
  try {
    const folder = await created()
    await cliJson(['types', folder])
    const paths = ['package.json', 'tsconfig.json', 'src', 'src/hello.ts', 'svc.gen.d.ts']
    assert.equal(
      paths.map((path) => modeOf(join(folder, path))),
      [0o640, 0o640, 0o750, 0o640, 0o640],
    )
  } finally {
    process.umask(before)
  }
})

test('name the command that follows svc init', async () => {
  const { out } = await cli(['init', join(tempDir(), 'app')])
  assert.match(out, /^next: npx svc dev /m)
})

test('keep the files that exist', async () => {
  const folder = await created()
  writeFileSync(join(folder, 'package.json'), '{"name": "mine", "type": "commonjs"}')
  const again = await cliJson<{ created: string[]; changed: string[]; kept: string[] }>(['init', folder])
  assert.equal([again.created, again.changed, again.kept.length], [[], [], 5])
  assert.is(readFileSync(join(folder, 'package.json'), 'utf8'), '{"name": "mine", "type": "commonjs"}')
})

test('report a .gitignore that was kept and does not cover the files with secrets', async () => {
  for (const [text, expected] of [
    ['dist\n', ['.gitignore: add .svc and .env.svc, which contain secrets']],
    ['# .env.svc\r\n/.svc/\r\n', ['.gitignore: add .env.svc, which contains secrets']],
    ['node_modules\n.env*\n**/.svc\n', []],
  ] as const) {
    const folder = tempDir()
    writeFileSync(join(folder, '.gitignore'), text)
    const { warnings } = await cliJson<{ warnings: string[] }>(['init', folder])
    assert.equal(warnings, expected)
    assert.is(readFileSync(join(folder, '.gitignore'), 'utf8'), text)
  }
})

test('report the type of the package.json that npm init writes', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'package.json'), '{"name": "mine", "type": "commonjs"}')
  assert.match(
    (await cli(['init', folder])).out,
    /^warning: package\.json: "type" is not "module", which tests of functions need: npm pkg set type=module$/m,
  )
  assert.equal((await cliJson<{ warnings: string[] }>(['init', await created()])).warnings, [])
})

test('add the type of modules to the package.json that npm writes in an empty folder', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'package.json'), '{\n\t"devDependencies": { "svc": "1" }\n}\n')
  const { changed } = await cliJson<{ changed: string[] }>(['init', folder])
  assert.equal(changed, ['package.json'])
  assert.is(
    readFileSync(join(folder, 'package.json'), 'utf8'),
    '{\n\t"type": "module",\n\t"devDependencies": {\n\t\t"svc": "1"\n\t}\n}\n',
  )
})

for (const [text, place] of [
  ['{\n  "name": "shop",\n  nope\n}\n', 'package.json:3:3: '],
  ['{"name": ', 'package.json:1:10: '],
  ['', 'package.json:1:1: '],
  ['{ "a": 1, }', 'package.json:1:'],
  ['[1]', 'package.json: expected an object'],
] as const)
  test(`refuse the package.json ${JSON.stringify(text)} at its place, and write nothing`, async () => {
    const folder = tempDir()
    writeFileSync(join(folder, 'package.json'), text)
    for (const command of ['init', 'build', 'types']) {
      const { code, out, err } = await cli([command, folder])
      assert.equal([code, out], [1, ''], command)
      assert.ok(err.startsWith(`svc: ${place}`), err)
      assert.equal(readdirSync(folder), ['package.json'])
      assert.is(readFileSync(join(folder, 'package.json'), 'utf8'), text)
    }
  })

test('leave nothing behind if one file cannot be written', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'src'), 'a file in place of the folder')
  const { code, err } = await cli(['init', folder])
  assert.is(code, 1)
  assert.match(err, /^svc: folder: cannot write .*src\/hello\.ts: /)
  assert.equal(readdirSync(folder), ['src'])
})

test('read a package.json with the mark that some editors write at its begin', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'package.json'), '\uFEFF{"name": "mine"}')
  assert.equal((await cliJson<{ changed: string[] }>(['init', folder])).changed, ['package.json'])
})

test('name what is wrong', async () => {
  const absent = await cli(['types', join(tempDir(), 'absent')])
  assert.is(absent.code, 1)
  assert.match(absent.err, 'FOLDER: expected a folder')
  const file = join(tempDir(), 'file')
  writeFileSync(file, '')
  const blocked = await cli(['init', file])
  assert.is(blocked.code, 1)
  assert.match(blocked.err, /^svc: folder: cannot write/)
  const folder = await created()
  const taken = await cli(['types', folder, '--out', folder])
  assert.equal([taken.code, taken.out], [1, ''])
  assert.match(taken.err, `svc: out: cannot write ${folder}: EISDIR`)
  assert.is(taken.err.split('\n').length, 2, taken.err)
})

test.run()
