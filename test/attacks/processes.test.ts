import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../src/ids.ts'
import { deploy, handle } from '../support/build.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { environOf } from './processes.ts'
import type { Target } from './target.ts'
import { refuses } from './tries.ts'

const CHILDREN = `const cp: any = await import('node:child_process');`

/** The processes of the children that live now. */
const childrenOf = ({ server }: Target): number[] => readdirSync(join(server.dataDir, 'children')).map(Number)

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)

const health = async ({ server }: Target): Promise<void> => {
  const { status } = await fetch(`${server.url}/healthz`)
  if (status !== 200) throw new Error(`The service answers ${status}`)
  if (hasEnded(server.process)) throw new Error('The service has ended')
}

attackSuite('processes and signals', [
  {
    id: 'A/13-spawn',
    attempt: 'start processes: spawn, exec, fork, cluster, the runner of node:test',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        spawn: `${CHILDREN} return cp.spawn('id').pid`,
        spawnSync: `${CHILDREN} const { error, stdout } = cp.spawnSync('id'); if (error) throw error; return stdout`,
        exec: `${CHILDREN} return cp.exec('id').pid`,
        execFileSync: `${CHILDREN} return cp.execFileSync('/usr/bin/id')`,
        fork: `${CHILDREN} return cp.fork('main.ts').pid`,
        default: `${CHILDREN} return cp.default.spawn('id').pid`,
        builtin: `return (process as any).getBuiltinModule('child_process').spawnSync('id').pid || null`,
        ChildProcess: `${CHILDREN} const child = new cp.ChildProcess(); child.spawn({ file: '/usr/bin/id', args: ['id'], stdio: 'ignore' }); return child.pid`,
        cluster: `const cluster: any = (await import('node:cluster')).default; return cluster.fork().process.pid`,
        test: `const { run }: any = await import('node:test'); for await (const { type, data } of run({ files: ['main.ts'] })) if (type === 'test:pass') return data.name`,
      }),
  },
  {
    id: 'A/14-execve',
    attempt: 'become another program by process.execve',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        execve: `(process as any).execve('/usr/bin/node', ['node'], {}); return 'replaced'`,
        strings: `(process as any).execve(process.execPath, [process.execPath, '-e', '1']); return 'replaced'`,
      }),
  },
  {
    id: 'A/15-workers',
    attempt: 'start worker threads, which could share the real environment',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        eval: `const { Worker } = await import('node:worker_threads'); new Worker('1', { eval: true }); return 'started'`,
        file: `const { Worker } = await import('node:worker_threads'); new Worker(process.cwd() + '/main.ts'); return 'started'`,
        data: `const { Worker } = await import('node:worker_threads'); new Worker(new URL('data:text/javascript,1')); return 'started'`,
        env: `const { Worker, SHARE_ENV } = await import('node:worker_threads'); new Worker('1', { eval: true, env: SHARE_ENV, execArgv: [] }); return 'started'`,
        web: `return (globalThis as any).Worker && 'web workers'`,
        register: `(await import('node:module')).register('data:text/javascript,export const resolve = 1'); return 'registered'`,
      }),
  },
  {
    id: 'A/27-os',
    attempt: 'change the user, the groups or the priority of processes',
    severity: 'medium',
    run: async (target) => {
      const root = process.getuid?.() === 0
      return refuses(target, {
        renice: `(await import('node:os')).setPriority(process.ppid, 19); return 'reniced'`,
        reniceAll: `(await import('node:os')).setPriority(1, 19); return 'reniced'`,
        setuid: `(process as any).setuid(0); return 'root'`,
        groups: `(process as any).setgroups([0]); return 'changed'`,
        initgroups: `(process as any).initgroups('root', 0); return 'changed'`,
        user: root
          ? `return process.getuid!() === 0 || process.geteuid!() === 0 || process.getgid!() === 0 ? 'root' : null`
          : 'return null',
      })
    },
  },
  {
    id: 'A/01-sigusr1-inspector/kill',
    attempt: 'open a debugger in the service by SIGUSR1, and run code there',
    severity: 'critical',
    run: async (target) => {
      const reason = await refuses(target, {
        kill: `process.kill(process.ppid, 'SIGUSR1'); return 'signalled'`,
        native: `return (process as any)._kill(process.ppid, 10)`,
        service: `process.kill(${target.server.process.pid}, 'SIGUSR1'); return 'signalled'`,
      })
      target.server.process.kill('SIGUSR1') // as if the signal had come from a function
      await health(target)
      if (target.server.output.join('').includes('Debugger listening'))
        throw new Error('The service opened a debugger')
      return `${reason}; the service ignores the signal`
    },
  },
  {
    id: 'A/01-sigusr1-inspector/debugProcess',
    attempt: 'open a debugger in the service by process._debugProcess',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        parent: `(process as any)._debugProcess(process.ppid); return 'signalled'`,
        service: `(process as any)._debugProcess(${target.server.process.pid}); return 'signalled'`,
        end: `(process as any)._debugEnd(process.ppid); return 'signalled'`,
      }),
  },
  ...(['SIGKILL', 'SIGSTOP'] as const).map((signal) => ({
    id: `A/02-signals/${signal.toLowerCase()}`,
    attempt: `${signal} to the service`,
    severity: 'critical' as const,
    run: async (target: Target) => {
      const reason = await refuses(target, {
        parent: `return process.kill(process.ppid, '${signal}')`,
        service: `return process.kill(${target.server.process.pid}, '${signal}')`,
        text: `return process.kill('${target.server.process.pid}' as any, '${signal}')`,
        object: `let calls = 0; return process.kill({ valueOf: () => (calls++ ? ${target.server.process.pid} : process.pid) } as any, '${signal}')`,
        cluster: `const cluster: any = (await import('node:cluster')).default; return new cluster.Worker({ process: { pid: ${target.server.process.pid}, kill: process.kill } }).kill('${signal}') ?? null`,
      })
      await health(target)
      return reason
    },
  })),
  {
    id: 'A/02-signals/neighbour',
    attempt: 'SIGKILL to the process of another tenant',
    severity: 'high',
    run: async (target) => {
      const project = `p-${newId()}`
      await deploy(target.victim.api, project, {
        'main.ts': `const identity = Math.random()
          export const work = () => identity`,
      })
      const work = () => handle(target.victim.api, 'svc:call', { fn: 'main/work', project, args: [] })
      const before = await work()
      const pids = childrenOf(target)
      await target.run(
        `export const attack = (pids: number[]) => {
          for (let near = Math.min(...pids) - 20; near < Math.max(...pids) + 20; near++)
            for (const pid of [near, -near]) if (near !== process.pid) try { process.kill(pid, 'SIGKILL') } catch {}
        }`,
        pids,
      )
      const after = await work()
      if (before.status !== 'succeeded' || after.result !== before.result)
        throw new Error('The process of the victim was replaced')
      return 'the process of the victim lives on'
    },
  },
  {
    id: 'A/02-signals/everybody',
    attempt: 'kill(-1): SIGKILL to every process of the user',
    severity: 'critical',
    run: async (target) => {
      const reason = await refuses(target, {
        all: `return process.kill(-1, 'SIGKILL')`,
        group: `return process.kill(0, 'SIGKILL')`,
        native: `return (process as any)._kill(-1, 9)`,
      })
      await health(target)
      return reason
    },
  },
  {
    id: 'A/03-outlive-and-impersonate',
    attempt: 'outlive the service, so that the child can take its port',
    severity: 'critical',
    run: async (target) => {
      const own = await target.fresh()
      const { status } = await own.run(`export const attack = () => {
        process.exit = (() => {}) as any
        ;(process as any).reallyExit = () => {}
        for (const socket of (process as any)._getActiveHandles()) { socket.removeAllListeners(); socket.on('error', () => {}) }
        process.removeAllListeners('exit')
        for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGPIPE']) process.on(signal, () => {})
        setInterval(() => {}, 1000)
        return 'prepared'
      }`)
      if (status !== 'succeeded') throw new Error(`The function ended as ${status}`)
      const pids = childrenOf(own)
      if (pids.length === 0) throw new Error('Expected a child that lives')
      await own.server.end('SIGKILL')
      await until(() => pids.every((pid) => !isAlive(pid)))
      return `${pids.length} children ended with the service, which was killed`
    },
  },
  {
    id: 'A/22-libc',
    attempt: 'make libc read files or change its behaviour by variables of the environment',
    severity: 'medium',
    run: async (target) => {
      const { result } = await target.run(`import { readFileSync, writeFileSync } from 'node:fs'
        import { lookup } from 'node:dns/promises'
        export const attack = async () => {
          Object.assign(process.env, { HOSTALIASES: '/etc/passwd', RES_OPTIONS: 'debug', LOCALDOMAIN: 'evil.example', TZ: ':/etc/passwd', NODE_OPTIONS: '--inspect', LD_PRELOAD: '/x.so', UV_THREADPOOL_SIZE: '1000', SSLKEYLOGFILE: '/tmp/k' })
          try { process.loadEnvFile('.env') } catch {}
          await lookup('root').catch(() => {})
          return { zone: new Date(0).getTimezoneOffset(), own: Object.keys(process.env).length > 2 }
        }`)
      const { zone } = result as { readonly zone: number }
      if (zone !== 0) throw new Error('The time zone of the process changed')
      for (const pid of childrenOf(target)) {
        if (/HOSTALIASES|LD_PRELOAD|RES_OPTIONS/.test(environOf(pid)))
          throw new Error('The environment changed')
      }
      return 'user code changes a copy of the environment'
    },
  },
])
