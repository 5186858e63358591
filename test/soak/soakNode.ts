import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../src/errors.ts'
import { type EngineProxies, openEngineProxies } from '../support/engineProxies.ts'
import { limitFiles } from '../support/limitFiles.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { tempDir } from '../support/tempDir.ts'

const smallDisk = new URL('../fixtures/smallDisk.ts', import.meta.url).href
const shiftedClock = new URL('../fixtures/shiftedClock.ts', import.meta.url).href

/** The longest time from SIGTERM to the end of a node. */
const STOP_MS = 90_000
/** The longest start of a node, on a machine with many times more to do than it can. */
const START_MS = 300_000
/** The pause before a node that did not start is started again, as a supervisor does. */
const RESTART_MS = 1000

/** A node of the service, which faults may end, pause or disturb. It keeps its data directory over restarts. */
export interface SoakNode {
  readonly name: string
  /** The proxies of its own in front of the engines. */
  readonly proxies: EngineProxies
  /** Null while it is down. */
  readonly url: string | null
  /** Everything that its processes printed. */
  readonly output: () => string
  /** Does nothing while it runs. */
  start(): Promise<void>
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  pause(): void
  resume(): void
  /** The most bytes that a file of the node may have. */
  limitFiles(bytes: number | 'unlimited'): Promise<void>
  shiftClock(ms: number): void
  close(): Promise<void>
}

interface Options {
  readonly name: string
  readonly env: Readonly<Record<string, string>>
  /** Default: a directory of its own. */
  readonly dataDir?: string
  readonly onMoved: () => void
  readonly onIncident: (what: string) => void
}

export const openSoakNode = async (options: Options): Promise<SoakNode> => {
  const { name, onMoved, onIncident } = options
  const dataDir = options.dataDir ?? tempDir()
  const clockFile = join(tempDir(), 'clock')
  const { proxies, env } = await openEngineProxies(options.env)
  const outputs: (readonly string[])[] = []
  let running: ServerProcess | null = null
  let starting: Promise<void> | null = null
  writeFileSync(clockFile, '0')

  const signal = (what: NodeJS.Signals) => running?.process.kill(what)
  /** A process that no fault ended is an incident, and starts again. */
  const watch = (server: ServerProcess): void => {
    server.process.once('exit', (code, by) => {
      if (running !== server) return
      running = null
      onMoved()
      onIncident(`${name} ended with ${by ?? code}: ${lastLines(server.output)}`)
      void start()
    })
  }
  const startOnce = async (): Promise<void> => {
    while (!running) {
      try {
        const server = await spawnServer({
          dataDir,
          env: {
            ...env,
            NODE_OPTIONS: `--import ${smallDisk} --import ${shiftedClock}`,
            SVC_TEST_CLOCK: clockFile,
          },
          startMs: START_MS,
        })
        outputs.push(server.output)
        running = server
        watch(server)
        onMoved()
      } catch (error) {
        onIncident(`${name} did not start: ${messageOf(error)}`)
        await delay(RESTART_MS)
      }
    }
  }
  const start = (): Promise<void> =>
    running ? Promise.resolve() : (starting ??= startOnce().finally(() => (starting = null)))
  return {
    name,
    proxies,
    get url() {
      return running?.url ?? null
    },
    output: () => outputs.flat().join(''),
    start,
    async end(how) {
      await starting
      const server = running
      if (!server) return
      running = null
      onMoved()
      const code = await endWithin(server, how)
      if (how === 'SIGTERM' && code !== 0)
        onIncident(`${name} ended with ${code} after SIGTERM: ${lastLines(server.output)}`)
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async limitFiles(bytes) {
      if (running?.process.pid) await limitFiles(running.process.pid, bytes) // it fails if the process has just ended
    },
    shiftClock: (ms) => {
      writeFileSync(clockFile, String(ms))
      signal('SIGUSR2')
    },
    async close() {
      for (const proxy of Object.values(proxies)) await proxy.close()
    },
  }
}

const endWithin = async (
  server: ServerProcess,
  how: NodeJS.Signals,
): Promise<number | NodeJS.Signals | null> => {
  const late = new AbortController()
  const ended = server.end(how).finally(() => late.abort())
  const timeout = delay(STOP_MS, undefined, { signal: late.signal }).then(
    () => server.end('SIGKILL'),
    () => ended,
  )
  return Promise.race([ended, timeout])
}

const lastLines = (output: readonly string[]): string =>
  output.join('').trimEnd().split('\n').slice(-5).join(' | ')
