import { existsSync } from 'node:fs'
import { newId } from '../../src/ids.ts'
import { type Attack, attackSuite } from './attack.ts'
import { deployed, endOf, shown } from './calls.ts'
import { openHostService } from './hostService.ts'
import { refuses } from './tries.ts'
import { portOf, type Target } from './target.ts'

const NET = `const net: any = await import('node:net');`
const DNS = `const dns: any = await import('node:dns');`
const MODULE = `const M: any = await import('node:module');`

/** Code that patches what the runtime and user code share, and then uses it. */
const POISONS: Readonly<Record<string, string>> = {
  'then of promises': `Promise.prototype.then = function () { return this } as any`,
  'maps and sets': `Map.prototype.get = () => { throw new Error('get') }; Set.prototype.add = () => { throw new Error('add') }`,
  JSON: `JSON.parse = () => ({ forged: true }); JSON.stringify = () => '{"type":"result","id":1,"value":"forged"}'`,
  'bytes of buffers': `Buffer.byteLength = () => 1; Buffer.prototype.write = () => 1; Buffer.prototype.writeUInt32BE = () => 4`,
  'stacks of errors': `Error.prepareStackTrace = () => { throw new Error('stack') }; Error.stackTraceLimit = 1e9`,
  'async contexts': `const { AsyncLocalStorage }: any = await import('node:async_hooks'); AsyncLocalStorage.prototype.getStore = () => ({ id: 1, ended: false }); AsyncLocalStorage.prototype.run = (_: any, work: any, ...rest: any[]) => work(...rest)`,
  'captured exceptions': `process.setUncaughtExceptionCaptureCallback(() => {}); setTimeout(() => { throw new Error('late') }, 1)`,
  'ticks and turns': `process.nextTick = () => {}; (globalThis as any).setImmediate = () => {}; (globalThis as any).queueMicrotask = () => {}`,
  streams: `const { Writable, Readable }: any = await import('node:stream'); Writable.prototype.write = () => true; Readable.prototype.on = function () { return this }`,
  'hooks of modules': `const { registerHooks }: any = await import('node:module'); registerHooks({ resolve: () => ({ url: 'data:text/javascript,export const inspect=1,evaluate=()=>1', shortCircuit: true }) })`,
  'a prototype of everything': `Object.setPrototypeOf(Object.prototype, null); Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Function.prototype)`,
  'the global object': `for (const name of Object.getOwnPropertyNames(globalThis)) try { delete (globalThis as any)[name] } catch {}`,
}

/** Functions that declare different keys of context have processes of their own. */
const POISONED = `import { emit, fn } from 'svc'
  ${Object.entries(POISONS)
    .map(
      (
        [, code],
        index,
      ) => `export const poison${index} = fn({ timeout: 1000, context: ['KEY_${index}'] }, async () => {
        ${code}
        console.log('x')
        await emit('x', { a: [1] })
        return { a: [1] }
      })`,
    )
    .join('\n')}`

/** Each poison in a process of its own, and the health of the other tenants afterwards. */
const poisoned = async ({ attacker: { api }, victim }: Target): Promise<string> => {
  const own = await deployed(victim.api, { 'main.ts': `export const attack = () => 'alive'` })
  const project = await deployed(api, { 'main.ts': POISONED })
  const outcomes = await Promise.all(
    Object.keys(POISONS).map(async (name, index) => {
      const run = await endOf(api, project, `poison${index}`)
      if (JSON.stringify(run).includes('"forged":true')) throw new Error(`${name}: ${JSON.stringify(run)}`)
      return `${name}: ${shown(run)}`
    }),
  )
  const alive = await endOf(victim.api, own, 'attack')
  if (alive.result !== 'alive') throw new Error(`another tenant: ${shown(alive)}`)
  return `each run ended: ${outcomes.join(', ')}`
}

const attacks: Attack[] = [
  {
    id: 'A/29-listen/handles',
    attempt:
      'listen, bind or resolve by the handles below the modules: of servers, datagrams, pipes and resolvers',
    severity: 'high',
    run: async (target) => {
      const host = await openHostService()
      const path = `/tmp/svc-attack-${newId()}.sock`
      try {
        const outcome = await refuses(
          target,
          {
            tcp: `${NET} const handle = net._createServerHandle('127.0.0.1', 0, 4); if (typeof handle === 'number') throw new Error('code ' + handle); return handle.listen(1) === 0 ? 'listens' : null`,
            'the port of the service': `${NET} const handle = net._createServerHandle('::', args.port, 6); if (typeof handle === 'number') throw new Error('code ' + handle); return handle.listen(1) === 0 ? 'listens' : null`,
            socket: `${NET} const handle = net._createServerHandle(args.path, -1, -1); if (typeof handle === 'number') throw new Error('code ' + handle); return handle.listen(1) === 0 ? 'listens' : 'bound'`,
            'class of a handle': `const pipes = (process as any)._getActiveHandles().map((each: any) => each._handle).filter(Boolean); const Pipe = pipes[0].constructor; const pipe = new Pipe(1); const code = pipe.bind(args.path + '.2'); return code === 0 ? 'bound' : null`,
            datagrams: `const dgram: any = await import('node:dgram'); const handle = dgram._createSocketHandle('127.0.0.1', 0, 'udp4'); if (typeof handle === 'number') throw new Error('code ' + handle); return handle.bind ? 'bound' : null`,
            'server of datagrams': `const dgram: any = await import('node:dgram'); const handle = new (dgram.Socket as any)('udp4'); handle.bind(0); return 'bound'`,
            'servers of the resolver': `${DNS} dns.setServers(['127.0.0.1:' + args.host]); dns.default?.setServers?.(['127.0.0.1:' + args.host]); return await new Promise((resolve, reject) => dns.resolveTxt('a.example', (error: any, found: any) => error ? reject(error) : resolve('asked')))`,
            cluster: `const cluster: any = (await import('node:cluster')).default; return cluster._getServer ? 'a worker' : null`,
            upgrade: `const http: any = await import('node:http'); const { Server } = http; const server = new Server(); server.emit('listening'); return server.listening ? 'listens' : null`,
          },
          { port: portOf(target), host: host.port, path },
        )
        if (host.reached > 0) throw new Error('went through: the host was reached')
        for (const file of [path, `${path}.2`])
          if (existsSync(file)) throw new Error(`went through: ${file} exists`)
        return outcome
      } finally {
        host.close()
      }
    },
  },
  {
    id: 'A/20-bindings/modules',
    attempt:
      'load native code or rights by modules that are rarely used: engines of TLS, sea, snapshots, hooks, test',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        'engine of a certificate': `(await import('node:tls')).createSecureContext({ clientCertEngine: '/lib/x86_64-linux-gnu/libc.so.6' } as any); return 'loaded'`,
        'engine of a key': `(await import('node:tls')).createSecureContext({ privateKeyEngine: '/lib/x86_64-linux-gnu/libc.so.6', privateKeyIdentifier: 'x' } as any); return 'loaded'`,
        'hooks in a thread': `${MODULE} M.register('data:text/javascript,'); return 'registered'`,
        'a hook that leads out': `${MODULE} const hook = M.registerHooks({ resolve: (name: string, context: any, next: any) => name === 'out' ? { url: 'file:///etc/passwd', format: 'json', shortCircuit: true } : next(name, context) }); try { return JSON.stringify(await import('out' as any, { with: { type: 'json' } })) } finally { hook.deregister() }`,
        'a script that imports': `const vm: any = await import('node:vm'); return String(await new vm.Script('import("file:///etc/passwd")', { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }).runInThisContext())`,
        'a compiled function that imports': `const vm: any = await import('node:vm'); return String(await vm.compileFunction('return import("file:///etc/hostname")', [], { importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })())`,
        'a map of a source': `(process as any).setSourceMapsEnabled(true); return (await import('node:module')).findSourceMap('/etc/passwd')`,
        sea: `return (await import('node:sea' as any)).getAsset('/etc/passwd')`,
        snapshot: `(await import('node:v8')).startupSnapshot.addSerializeCallback(() => {}); return 'added'`,
        'test runner': `const { run }: any = await import('node:test'); for await (const event of run({ files: ['/etc/passwd'], isolation: 'none' })) if (event.type === 'test:pass') return 'executed'; return null`,
        'test runner in a process': `const { run }: any = await import('node:test'); for await (const event of run({ files: [process.cwd() + '/main.ts'] })) if (event.type === 'test:pass') return 'executed'; return null`,
        glob: `const fs: any = await import('node:fs'); const found = fs.globSync('/etc/*'); return found.length > 0 ? found.join() : null`,
        'glob without follow': `const fs: any = await import('node:fs/promises'); for await (const name of fs.glob('../*', { cwd: process.cwd() })) return name; return null`,
        statfs: `return (await import('node:fs')).statfsSync('/etc').type`,
        realpath: `return (await import('node:fs')).realpathSync('/etc/mtab')`,
        directories: `return (await import('node:fs')).opendirSync('/etc').readSync()?.name`,
        'directories without end': `for await (const { name } of await (await import('node:fs/promises')).opendir('/etc', { recursive: true } as any)) return name; return null`,
        'temporary directories': `return (await import('node:fs') as any).mkdtempDisposableSync('/var/tmp/svc-').path`,
        coverage: `const v8: any = await import('node:v8'); v8.startCpuProfile?.(); return null`,
        worker: `const { Worker }: any = await import('node:worker_threads'); return new Worker('process.exit()', { eval: true, execArgv: ['--allow-fs-read=*'], env: { NODE_OPTIONS: '--allow-addons' } }).threadId ? 'started' : null`,
        'permission of a thread': `return (process as any).permission.has('fs.read', '/etc/passwd') || (process as any).permission.has('child') || (process as any).permission.has('worker') || (process as any).permission.has('addon') || (process as any).permission.has('net') || null`,
        parent: `return process.ppid > 1 && process.kill(process.ppid, 0) ? 'signalled' : null`,
        groups: `return process.kill(-process.pid, 0) ? 'signalled the group' : null`,
        'all groups': `return process.kill(0, 0) ? 'signalled the group' : null`,
      }),
  },
  {
    id: 'A/31-pollution/poisons',
    attempt: `poison what the runtime shares with functions: ${Object.keys(POISONS).join(', ')}`,
    severity: 'medium',
    run: poisoned,
  },
]

attackSuite('the inside of the process of a function', attacks)
