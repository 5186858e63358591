import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { runIn } from '../support/example.ts'
import { freePort } from '../support/freePort.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { launch, type Launched } from '../support/launch.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/operations.md'), 'utf8')

/** A command, and the lines that the page shows as its output. */
interface Step {
  readonly command: string
  readonly shown: readonly string[]
}

/** The commands of a block: those after `$`, or the whole of a script. */
const stepsIn = (kind: string, text: string): Step[] => {
  if (kind === 'sh') return [{ command: text, shown: [] }]
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = '', ...shown] = step.split('\n')
      return { command, shown: shown.filter(Boolean) }
    })
}

const blocks = [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
  .filter(([, kind = '']) => ['', 'sh', 'console'].includes(kind))
  .map(([, kind = '', text = '']) => stepsIn(kind, text))
  .filter((steps) => steps.length > 0)

/** These need what a test has not; others run them with it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'set -a; . ./cluster.env; set +a': 'test/cluster/restore.test.ts',
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
/** What differs between two installations. */
const VARIABLE = new RegExp(
  [
    `(?<id>${UUID})`,
    '(?<time>\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z)',
    '(?<hex>[0-9a-f]{16,64})',
    '(?<duration>\\d[\\d.]* (?:ms|s|min|h)\\b)',
    '(?<number>\\d[\\d.]*)',
    '(?<any>…)',
    '(?<space> +)',
  ].join('|'),
  'g',
)

/** A pattern for a line of shown output. Its groups are the ids. */
const patternOf = (line: string): RegExp => {
  let at = 0
  let source = ''
  for (const { 0: text, index, groups = {} } of line.matchAll(VARIABLE)) {
    source += RegExp.escape(line.slice(at, index))
    at = index + text.length
    if (groups['id']) source += `(${UUID})`
    else if (groups['time']) source += '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z'
    else if (groups['hex']) source += '[0-9a-f]{16,64}'
    else if (groups['duration']) source += '\\d[\\d.]* (?:ms|s|min|h)'
    else if (groups['number']) source += '\\d[\\d.]*'
    else source += groups['any'] ? '.*' : ' +'
  }
  return new RegExp(source + RegExp.escape(line.slice(at)))
}

/** Runs the page from a folder that is like a fresh clone. */
class Clone {
  readonly dir = tempDir()
  readonly cwd = join(this.dir, 'svc')
  readonly env: Record<string, string>
  readonly #paths: readonly (readonly [shown: string, real: string])[] = [
    ['/var/backups/svc', join(this.dir, 'backup')],
    ['/var/lib/svc', join(this.dir, 'lib')],
    ['/srv/svc', this.cwd],
    ['/safe', join(this.dir, 'safe')],
    ['/backups', this.cwd],
  ]
  /** The real ids of those that the page shows. */
  readonly ids = new Map<string, string>()
  readonly #running = new Map<string, Launched>()

  constructor(port: number) {
    for (const folder of [this.cwd, join(this.dir, 'bin'), join(this.dir, 'safe')]) mkdirSync(folder)
    for (const name of ['package.json', 'bin', 'src', 'node_modules'])
      symlinkSync(join(root, name), join(this.cwd, name))
    symlinkSync(join(root, 'bin/svc.js'), join(this.dir, 'bin/svc'))
    const PATH = [join(this.dir, 'bin'), process.env['PATH']].join(delimiter)
    this.env = { ...EMBEDDED, HOME: this.dir, PATH, PORT: String(port), SVC_LOG_FORMAT: 'text' }
  }

  async start(name = 'first', env: Readonly<Record<string, string>> = {}): Promise<void> {
    const options = { cwd: this.cwd, env: { ...this.env, ...env }, ready: /is ready on/ }
    this.#running.set(name, await launch(['npm', 'start'], options))
  }

  async stop(name = 'first'): Promise<void> {
    await this.#running.get(name)?.stop()
    this.#running.delete(name)
  }

  async stopAll(): Promise<void> {
    for (const name of this.#running.keys()) await this.stop(name)
  }

  secrets(dataDir = join(this.cwd, '.svc')): { readonly api_key: string; readonly operator_token: string } {
    return JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as ReturnType<Clone['secrets']>
  }

  get url(): string {
    return `http://127.0.0.1:${this.env['PORT']}`
  }

  /** Runs a command and compares its output with the lines of the page. */
  async run({ command, shown }: Step): Promise<string> {
    const real = this.#real(command)
    const { code, out } = await runIn(this.cwd, 'bash', ['-c', `set -e\n${real}`], this.env)
    const fails = shown.some((line) => /^svc: |^failed |: line \d/.test(line))
    assert.is(code > 0, fails && !real.includes('|'), `${command}\n${out}`)
    let rest = out
    for (const line of shown) {
      const found = patternOf(this.#real(line)).exec(rest)
      assert.ok(found, `${command}\nshows no line like ${line}:\n${out}`)
      const ids = line.match(new RegExp(UUID, 'g')) ?? []
      ids.forEach((id, n) => this.ids.set(id, found?.[n + 1] ?? ''))
      rest = rest.slice((found?.index ?? 0) + (found?.[0].length ?? 0))
    }
    return out
  }

  #real(text: string): string {
    let real = text
    for (const [shown, path] of this.#paths) real = real.replaceAll(shown, path)
    for (const [shown, id] of this.ids) real = real.replaceAll(shown, id)
    return real
  }
}

/** What the text around a block does, by the beginning of its first command. */
const preparations: Readonly<
  Record<string, (clone: Clone, steps: readonly Step[]) => Promise<readonly Step[] | undefined>>
> = {
  async 'svc doctor'(clone) {
    await clone.stop()
    return undefined
  },
  async 'svc orgs create'(clone) {
    await clone.start()
    return undefined
  },
  // The authority is not asked: the settings are checked.
  'SVC_PUBLIC_URL=': (_, [step]) =>
    Promise.resolve([
      {
        command: (step?.command ?? '').replace('npm start', 'npx svc doctor --local || true'),
        shown: ['ok       configuration   valid'],
      },
    ]),
  async 'SVC_DATA_DIR=/var/lib/svc npx svc restore /var/backups/svc'(clone, steps) {
    copyFileSync(join(clone.cwd, '.svc/secrets.json'), join(clone.dir, 'safe/secrets.json'))
    await clone.stop()
    const [last] = steps.slice(-1)
    if (last?.command !== 'SVC_DATA_DIR=/var/lib/svc npm start') return undefined // the second block
    for (const step of steps.slice(0, -1)) await clone.run(step)
    await clone.start('restored', { SVC_DATA_DIR: join(clone.dir, 'lib') })
    return []
  },
  async 'npx svc export'(clone, steps) {
    await clone.stop('restored')
    await clone.start()
    const shop = ['svc orgs create shop --plan pro', 'svc envs create shop prod']
    for (const command of shop) await clone.run({ command, shown: [] })
    const made = await clone.run({ command: 'svc keys create shop/prod --name ci --json', shown: [] })
    const { token } = JSON.parse(made) as { token: string }
    await openApi(clone.url, token).post('/projects', { name: 'store' })
    const other = { PORT: String(await freePort()), SVC_DATA_DIR: join(clone.dir, 'other') }
    await clone.start('other', other)
    const { operator_token } = clone.secrets(other.SVC_DATA_DIR)
    return steps.map(({ command, shown }) => ({
      command: command
        .replace('https://svc.example.com', `http://127.0.0.1:${other.PORT}`)
        .replace('SVC_OPERATOR_TOKEN=…', `SVC_OPERATOR_TOKEN=${operator_token}`),
      shown,
    }))
  },
  async 'npx svc audit --resource'(clone, [first]) {
    const api = openApi(clone.url, clone.secrets().api_key)
    const { project_id } = await api.post<{ project_id: string }>('/projects', { name: 'shop' })
    await api.patch(`/projects/${project_id}`, { name: 'store' })
    clone.ids.set(new RegExp(UUID).exec(first?.command ?? '')?.[0] ?? '', project_id)
    return undefined
  },
  async 'curl -s'(clone, steps) {
    const { operator_token, api_key } = clone.secrets()
    Object.assign(clone.env, { SVC_URL: clone.url, SVC_OPERATOR_TOKEN: operator_token })
    const { env_id } = await openApi(clone.url, api_key).get<{ env_id: string }>('/env')
    return steps.map(({ command, shown }) => ({
      command: command.replaceAll('curl -s', 'curl -sf').replaceAll('ENV_ID', env_id),
      shown,
    }))
  },
}

const operations = suite('docs/operations.md', { timeoutMs: 400_000 })

operations('shows commands and their output as they are, from a fresh clone', async () => {
  const clone = new Clone(await freePort())
  const done: string[] = []
  try {
    await clone.start()
    for (const steps of blocks) {
      const [first] = steps
      if (!first || first.command in ELSEWHERE) continue
      const known = Object.keys(preparations).find((beginning) => first.command.startsWith(beginning))
      const prepared = known === undefined ? undefined : await preparations[known]?.(clone, steps)
      for (const step of prepared ?? steps) await clone.run(step)
      done.push(...(known === undefined ? [] : [known]))
    }
  } finally {
    await clone.stopAll()
  }
  assert.equal(new Set(done), new Set(Object.keys(preparations)))
})

operations('and the other pages name scripts and benchmarks that exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  const benches = readFileSync(join(root, 'bench/main.ts'), 'utf8')
  const pages = ['operations', 'scaling', 'engines', 'security', 'architecture']
  const text = pages.map((name) => readFileSync(join(root, `docs/${name}.md`), 'utf8')).join('\n')
  const named = [...text.matchAll(/npm run ([\w:]+)(?: (\w+))?/g)]
  assert.ok(named.length > 5)
  for (const [shown, script = '', bench] of named) {
    assert.ok(script in scripts, shown)
    if (script === 'bench' && bench !== undefined) assert.match(benches, `  ${bench}: async`, shown)
  }
})

operations.run()
