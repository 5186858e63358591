import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { archiveOf } from '../../src/package/archive.ts'
import { packageDir } from '../../src/package/built.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { deploy } from '../support/build.ts'
import { runIn } from '../support/example.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { install, npmPack, unpacked } from '../support/installed.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** What function authors need: types, command line, client and test kit. The server is the rest. */
const MAX_AUTHOR_BYTES = 400 * 1000
const MAX_PACKAGE_BYTES = 1_850_000 // the dashboard and the page of the API are part of the service

const fixture = fileURLToPath(new URL('../fixtures/package', import.meta.url))

interface Context {
  tarball: string
  /** The unpacked package. */
  content: string
  /** A project that has it installed. */
  project: string
}

const installed = suite<Context>('the installed package', { timeoutMs: 180_000 })

installed.before(async (context) => {
  context.tarball = await npmPack()
  context.content = await unpacked(context.tarball)
  context.project = await install(context.content, fixture)
})

const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(dir, path)).isFile())

installed(
  'contains JavaScript and declarations, and no TypeScript that Node would have to strip',
  ({ content }) => {
    const files = filesIn(content)
    assert.equal(
      files.filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts')),
      [],
    )
    for (const path of [
      'dist/sdk/index.d.ts',
      'dist/client/index.d.ts',
      'dist/testkit/index.d.ts',
      'dist/cli/main.js',
      'dist/main.js',
      'dist/ui/index.html',
      'bin/svc.js',
    ])
      assert.ok(files.includes(path), path)
  },
)

installed('contains the dashboard as it is served, without its modules', ({ content }) => {
  const files = filesIn(join(content, 'dist/ui'))
  assert.ok(files.some((path) => path.startsWith('assets') && path.endsWith('.js.br')))
  assert.equal(
    files.filter((path) => !/^(?:index\.html|assets[/\\][\w.-]+-\w{8}\.\w+)(?:\.br)?$/.test(path)),
    [],
  )
})

installed('names no module that it does not contain', ({ content }) => {
  for (const path of filesIn(content).filter((each) => /\.(?:js|d\.ts)$/.test(each))) {
    const text = readFileSync(join(content, path), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/(?:from |import |import\()'(\.{1,2}\/[^']+)'/g)) {
      const target = join(content, path, '..', specifier)
      const found = [target, target.replace(/\.js$/, '.d.ts')].some((each) =>
        statSync(each, { throwIfNoEntry: false }),
      )
      assert.ok(found, `${path} imports ${specifier}`)
    }
  }
})

installed('has a client for browsers, which imports nothing but itself', ({ content }) => {
  const dir = join(content, 'dist/client')
  const files = filesIn(dir).filter((path) => path.endsWith('.js'))
  assert.ok(files.length > 5)
  for (const path of files)
    for (const [, specifier = ''] of readFileSync(join(dir, path), 'utf8').matchAll(
      /(?:from |import\()'([^']+)'/g,
    ))
      assert.match(specifier, /^\.\//, path)
})

installed('is small', ({ tarball, content }) => {
  const parts = ['sdk', 'client', 'cli', 'testkit'].map((part) => join(content, 'dist', part))
  const files = parts
    .filter((dir) => statSync(dir, { throwIfNoEntry: false }))
    .flatMap((dir) => filesIn(dir).map((path) => join(dir, path)))
  const bytes = gzipSync(Buffer.concat(files.map((path) => readFileSync(path)))).length
  assert.ok(bytes <= MAX_AUTHOR_BYTES, `${bytes} bytes for authors`)
  assert.ok(statSync(tarball).size <= MAX_PACKAGE_BYTES, `${statSync(tarball).size} bytes`)
})

installed('brings no script that runs at its installation, except those of esbuild and protobufjs', () => {
  const lock = readFileSync(join(packageDir, 'package-lock.json'), 'utf8')
  const { packages } = JSON.parse(lock) as {
    packages: Readonly<Record<string, { dev?: true; hasInstallScript?: true; name?: string }>>
  }
  const scripts = Object.entries(packages).filter(([, { dev, hasInstallScript, name }]) => {
    const isReplaced = name !== undefined // by `overrides`, which an installation of the package does not apply
    return !dev && (hasInstallScript || isReplaced)
  })
  assert.equal(
    scripts.map(([path]) => path).filter((path) => path !== ''),
    ['node_modules/esbuild', 'node_modules/protobufjs'],
  )
})

/** Whether a range of `engines.node`, such as `^18.19.0 || >=20.6.0`, contains a version. */
const accepts = (range: string, version: readonly number[]): boolean =>
  range.split('||').some((part) => {
    const [, operator = '', digits = ''] = /^\s*(>=|\^|~|=)?\s*v?([\d.x*]+)/.exec(part) ?? []
    const least = digits.split('.').map((each) => Number(each) || 0)
    const differing = version.findIndex((each, index) => each !== (least[index] ?? 0))
    const isLess = differing >= 0 && (version[differing] ?? 0) < (least[differing] ?? 0)
    return !isLess && (operator === '>=' || least[0] === version[0] || digits === '*')
  })

installed('needs no newer Node than it declares, so that npm warns about none of its dependencies', () => {
  const read = <T>(path: string): T => JSON.parse(readFileSync(join(packageDir, path), 'utf8')) as T
  const { engines } = read<{ engines: { node: string } }>('package.json')
  const declared = engines.node.replace('>=', '').split('.').map(Number)
  const { packages } = read<{
    packages: Readonly<Record<string, { dev?: true; optional?: true; engines?: { node?: string } }>>
  }>('package-lock.json')
  const refusing = Object.entries(packages)
    .filter(([, { dev, optional }]) => !dev && !optional)
    .filter(([, { engines: { node = '*' } = {} }]) => !accepts(node, declared))
  assert.equal(
    refusing.map(([path, { engines: needed }]) => `${path} ${needed?.node}`),
    [],
  )
})

installed('gives the editor the types of functions, events and the API', async ({ project }) => {
  const tsc = join(project, 'node_modules/typescript/bin/tsc')
  const { code, out } = await runIn(project, process.execPath, [tsc, '-p', '.'])
  assert.equal([code, out], [0, ''])
})

installed('allows every name before svc types was run', async ({ content }) => {
  const project = await install(content, fixture)
  writeFileSync(join(project, 'svc.gen.d.ts'), '')
  writeFileSync(join(project, 'wrong.ts'), '')
  writeFileSync(join(project, 'client.ts'), '')
  writeFileSync(
    join(project, 'src/orders/pipeline.ts'),
    `import { call, run, send } from 'svc'
    import { createClient } from 'svc/client'
    export const total = async () => {
      await send('anything', { a: 1 })
      await send('anything')
      await call('any.module/fn', 1, 'two')
      const result = await createClient({ url: '', token: '' }).call('any.module/fn', 1).result()
      const sum: number = await run<number>('prices/sum', [1, 2])
      return [sum, result]
    }`,
  )
  const tsc = join(project, 'node_modules/typescript/bin/tsc')
  const { code, out } = await runIn(project, process.execPath, [tsc, '-p', '.'])
  assert.equal([code, out], [0, ''])
})

installed('throws for calls of the SDK outside of a run', async ({ project }) => {
  const code = `import { send } from 'svc'; await send('a').catch((error) => console.log(error.message))`
  const { out } = await runIn(project, process.execPath, ['--input-type=module', '-e', code])
  assert.match(out, 'Expected send() to be called inside a run')
})

installed('bundles a project', async ({ project }) => {
  const svc = join(project, 'node_modules/svc/bin/svc.js')
  const { code, out } = await runIn(project, process.execPath, [svc, 'build', '--json'])
  assert.is(code, 0, out)
  const { functions } = JSON.parse(out) as { functions: readonly { readonly fn: string }[] }
  assert.ok(functions.some(({ fn }) => fn.startsWith('orders.pipeline/')))
})

/** Starts the service of the project with `svc serve`. */
const serve = async (project: string) => {
  const dataDir = tempDir()
  const env = { ...EMBEDDED, PORT: '0', SVC_DATA_DIR: dataDir, SVC_LOG_FORMAT: 'text' }
  const child = spawn(process.execPath, [join(project, 'node_modules/svc/bin/svc.js'), 'serve'], {
    cwd: project,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  const url = await until(() => /is ready on ([^\s"]+)/.exec(out)?.[1], { timeoutMs: 60_000 })
  const key = openSecrets(readConfig(env)).apiKey
  const stop = () => {
    child.kill('SIGTERM')
    return ended
  }
  return { url, key, stop }
}

installed(
  'is the command line and the service: functions run, and the client follows them',
  async ({ project, content }) => {
    const { version } = JSON.parse(readFileSync(join(content, 'package.json'), 'utf8')) as { version: string }
    const svc = join(project, 'node_modules/svc/bin/svc.js')
    assert.equal(await runIn(project, process.execPath, [svc, '--version']), { code: 0, out: `${version}\n` })

    const { url, key, stop } = await serve(project)
    try {
      const pipeline = readFileSync(join(project, 'src/orders/pipeline.ts'), 'utf8')
      await deploy(openApi(url, key), 'orders', { 'orders/pipeline.ts': pipeline })
      const { out } = await runIn(project, process.execPath, ['client.ts'], { SVC_URL: url, SVC_KEY: key })
      const { text, delivered, forgotten, ended } = JSON.parse(out) as Record<string, unknown>
      assert.equal([text, delivered, forgotten], ['EUR 20.00', '1970-01-01 without a note', null])
      assert.is(ended, 4, 'both handlers, the child run and the call')

      const script = await fetch(`${url}/docs/swagger-ui-bundle.js`)
      assert.is(script.status, 200)
      assert.equal(
        Buffer.from(await script.arrayBuffer()),
        readFileSync(join(content, 'dist/swagger-ui/swagger-ui-bundle.js')),
      )

      const served = await fetch(`${url}/sdk/svc.tgz`)
      assert.is(served.status, 200)
      const headers = { 'If-None-Match': served.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' }
      assert.is((await fetch(`${url}/sdk/svc.tgz`, { headers })).status, 304)
      const again = await unpackedBytes(Buffer.from(await served.arrayBuffer()))
      assert.equal(filesIn(again).sort(), filesIn(content).sort())
      for (const path of filesIn(content))
        assert.ok(readFileSync(join(again, path)).equals(readFileSync(join(content, path))), path)
    } finally {
      assert.is(await stop(), 0)
    }
  },
)

const unpackedBytes = async (bytes: Buffer): Promise<string> => {
  const file = join(tempDir(), 'svc.tgz')
  writeFileSync(file, bytes)
  return unpacked(file)
}

installed.run()

const archive = suite('an archive')

archive('is the same for the same files, because lock files contain its hash', async () => {
  const files = [{ path: 'package/a.js', content: Buffer.from('a'), isExecutable: false }]
  assert.ok((await archiveOf(files)).equals(await archiveOf(files)))
})

archive('keeps contents and modes, also of empty files and of files that fill a block', async () => {
  const files = [0, 1, 511, 512, 513].map((size) => ({
    path: `package/${size}`,
    content: Buffer.alloc(size, 'x'),
    isExecutable: size === 1,
  }))
  const dir = await unpackedBytes(await archiveOf(files))
  for (const { path, content, isExecutable } of files) {
    const file = join(dir, '..', path)
    assert.ok(readFileSync(file).equals(content), path)
    assert.is(statSync(file).mode & 0o111, isExecutable ? 0o111 : 0)
  }
})

archive('refuses a path that its header cannot contain', async () => {
  const path = `package/${'a'.repeat(100)}`
  const failure = await failureOf(archiveOf([{ path, content: Buffer.alloc(0), isExecutable: false }]))
  assert.match((failure as Error).message, 'at most 100 bytes')
})

archive.run()
