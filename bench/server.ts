import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { ZipFile } from 'yazl'
import { serviceArguments } from '../src/cli/serve.ts'
import { openSecrets } from '../src/process/secretsFile.ts'
import { readConfig } from '../src/process/config.ts'

/** The real server in a separate process. Its data directory is beside the repository, so that syncs reach a disk. */
export class BenchServer {
  readonly dir: string
  readonly process: ChildProcess
  readonly url: string
  readonly key: string
  readonly #operatorToken: string
  #projects = 0

  private constructor(
    dir: string,
    process: ChildProcess,
    url: string,
    secrets: { apiKey: string; operatorToken: string },
  ) {
    this.dir = dir
    this.process = process
    this.url = url
    this.key = secrets.apiKey
    this.#operatorToken = secrets.operatorToken
  }

  /** `env`: configuration variables in addition to directory and port. */
  static async start(
    dir = mkdtempSync(fileURLToPath(new URL('../.bench-', import.meta.url))),
    env: Readonly<Record<string, string>> = {},
  ): Promise<BenchServer> {
    const whole = { ...process.env, SVC_DATA_DIR: dir, PORT: '0', NODE_OPTIONS: '', ...env }
    const command = serviceArguments()
    const child = spawn(
      process.execPath,
      [
        ...command.slice(0, -1),
        ...(process.env['BENCH_FLAGS']?.split(' ') ?? []),
        ...process.execArgv.filter((flag) => flag.startsWith('--cpu-prof')),
        ...command.slice(-1),
      ],
      {
        env: whole,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const url = await new Promise<string>((resolve, reject) => {
      child.once('exit', () => reject(new Error('The server did not become ready')))
      child.stdout?.on('data', (chunk: Buffer) => {
        const ready = / is ready on ([^\s"]+)/.exec(chunk.toString())?.[1]
        if (ready !== undefined) resolve(ready)
      })
    })
    return new BenchServer(dir, child, url, openSecrets(readConfig(whole)))
  }

  async api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const reply = await fetch(`${this.url}/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.key}` },
      ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    })
    const json = (await reply.json()) as { data: T; error?: { message: string } }
    if (json.error) throw new Error(`${method} ${path}: ${json.error.message}`)
    return json.data
  }

  /** Creates another organization on the same server. */
  async tenant(slug: string): Promise<BenchServer> {
    const create = async <T>(path: string, body: unknown): Promise<T> => {
      const reply = await fetch(`${this.url}/operator${path}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${this.#operatorToken}` },
        body: JSON.stringify(body),
      })
      return ((await reply.json()) as { data: T }).data
    }
    await create('/orgs', { slug, name: slug, plan: 'self_host' })
    const { env_id } = await create<{ env_id: string }>(`/orgs/${slug}/envs`, { name: 'dev' })
    const { token } = await create<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'full' })
    const operatorToken = this.#operatorToken
    return new BenchServer(this.dir, this.process, this.url, { apiKey: token, operatorToken })
  }

  /** Deploys modules from their text; resolves with the webhook URLs by path. */
  async deploy(files: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const archive = new ZipFile()
    for (const [name, text] of Object.entries(files)) archive.addBuffer(Buffer.from(text), name)
    archive.end()
    const zip = await buffer(archive.outputStream)
    const project = `bench-${++this.#projects}`
    await this.api('POST', '/projects', { name: project })
    const form = new FormData()
    form.set('hash', createHash('sha256').update(zip).digest('hex'))
    form.set('file', new Blob([new Uint8Array(zip)]), 'bench.zip')
    const { build_id } = await this.api<{ build_id: string }>('POST', `/projects/${project}/builds`, form)
    await this.api('POST', `/projects/${project}/builds/${build_id}/deploy`)
    const hooks = await this.api<{ path: string; url: string }[]>('GET', `/projects/${project}/webhooks`)
    return Object.fromEntries(hooks.map(({ path, url }) => [path, url]))
  }

  /** CPU time of the server process so far, which is independent of other work on the machine; Linux only. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10
  }

  async stop({ keep = false } = {}): Promise<void> {
    const exit = new Promise((resolve) => this.process.once('exit', resolve))
    this.process.kill('SIGTERM')
    await exit
    if (!keep) rmSync(this.dir, { recursive: true, force: true })
  }
}
