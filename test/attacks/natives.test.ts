import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { attackSuite } from './attack.ts'
import { refuses } from './tries.ts'

const REQUIRE = `const require: any = (await import('node:module')).createRequire(import.meta.url);`

attackSuite('native parts of Node', [
  {
    id: 'A/09-sqlite-read',
    attempt: 'read the log of the service by node:sqlite',
    severity: 'critical',
    run: (target) =>
      refuses(
        target,
        {
          import: `const { DatabaseSync }: any = await import('node:sqlite'); return new DatabaseSync(args.dir + '/log.db').location()`,
          require: `${REQUIRE} return new (require('node:sqlite').DatabaseSync)(args.dir + '/log.db').location()`,
          builtin: `return new (process as any).getBuiltinModule('node:sqlite').DatabaseSync(args.dir + '/log.db').location()`,
          memory: `return new (process as any).getBuiltinModule('node:sqlite').DatabaseSync(':memory:').prepare('select 1').get()`,
          storage: `return (globalThis as any).localStorage.setItem('a', 'b') ?? 'stored'`,
        },
        { dir: target.server.dataDir },
      ),
  },
  {
    id: 'A/10-sqlite-write',
    attempt: 'write files by VACUUM INTO, ATTACH and backup of node:sqlite',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        vacuum: `new (process as any).getBuiltinModule('node:sqlite').DatabaseSync(':memory:').exec("VACUUM INTO '/var/tmp/svc-vacuum'"); return 'written'`,
        attach: `new (process as any).getBuiltinModule('node:sqlite').DatabaseSync(':memory:').exec("ATTACH '/var/tmp/svc-attached' AS x; CREATE TABLE x.t(a)"); return 'written'`,
        backup: `return (process as any).getBuiltinModule('node:sqlite').backup`,
      }),
  },
  {
    id: 'A/11-v8-flags-write',
    attempt: 'make V8 write files by its flags',
    severity: 'critical',
    run: async (target) => {
      const before = new Set(readdirSync(tmpdir()))
      const reason = await refuses(target, {
        traces: `(await import('node:v8')).setFlagsFromString('--redirect-code-traces-to=/var/tmp/svc-by-v8'); return 'set'`,
        default: `(await import('node:v8')).default.setFlagsFromString('--print-opt-code'); return 'set'`,
        require: `${REQUIRE} require('v8').setFlagsFromString('--trace-turbo'); return 'set'`,
        builtin: `(process as any).getBuiltinModule('v8').setFlagsFromString('--logfile=/var/tmp/svc-by-v8'); return 'set'`,
        redefined: `const v8 = (await import('node:v8')).default; Object.defineProperty(v8, 'setFlagsFromString', { value: 1 }); return 'redefined'`,
        deleted: `const v8: any = (await import('node:v8')).default; delete v8.setFlagsFromString; return 'deleted'`,
      })
      if (existsSync('/var/tmp/svc-by-v8')) throw new Error('V8 wrote a file')
      if (readdirSync(tmpdir()).some((name) => name.startsWith('turbo-') && !before.has(name)))
        throw new Error('V8 wrote a dump')
      return reason
    },
  },
  {
    id: 'A/12-v8-natives',
    attempt: 'switch on the natives syntax of V8, which ignores types',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        natives: `(await import('node:v8')).setFlagsFromString('--allow-natives-syntax'); return (0, eval)('%GetOptimizationStatus(function(){})')`,
        syntax: `return new Function('return %DebugPrint(1)')()`,
      }),
  },
  {
    id: 'A/16-addons',
    attempt: 'load native code: addons, shared libraries, OpenSSL engines',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        dlopen: `process.dlopen({ exports: {} } as any, '/lib/x86_64-linux-gnu/libc.so.6'); return 'loaded'`,
        prototype: `Object.getPrototypeOf(process).dlopen({ exports: {} }, '/lib/x86_64-linux-gnu/libc.so.6'); return 'loaded'`,
        extension: `const M: any = (await import('node:module')).default; M._extensions['.node']({ exports: {} }, process.cwd() + '/a.node'); return 'loaded'`,
        linked: `return (process as any)._linkedBinding('x')`,
        engine: `(await import('node:crypto')).setEngine('/lib/x86_64-linux-gnu/libc.so.6'); return 'loaded'`,
      }),
  },
  {
    id: 'A/17-ffi',
    attempt: 'call libc by node:ffi',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        import: `return Object.keys(await import('node:ffi' as any)).join()`,
        builtin: `return (process as any).getBuiltinModule('node:ffi')?.dlopen`,
      }),
  },
  {
    id: 'A/18-wasi',
    attempt: 'open the root directory by WASI',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        wasi: `const { WASI } = await import('node:wasi'); return new WASI({ version: 'preview1', preopens: { '/': '/' } }).wasiImport && 'opened'`,
      }),
  },
  {
    id: 'A/19-inspector',
    attempt: 'open the inspector of the child',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        open: `(await import('node:inspector')).open(0); return 'open'`,
        session: `new (await import('node:inspector')).Session().connect(); return 'connected'`,
        promises: `new (await import('node:inspector/promises')).Session().connect(); return 'connected'`,
        url: `return (await import('node:inspector')).url()`,
        debug: `(process as any)._debugProcess(process.pid); return 'signalled'`,
        profile: `return (await import('node:v8') as any).startCpuProfile() && 'a thread takes samples'`,
        heapProfile: `return (await import('node:v8') as any).startHeapProfile() && 'takes samples'`,
        port: `(process as any).debugPort = 0; (process as any)._debugProcess(process.ppid); return 'signalled'`,
      }),
  },
  {
    id: 'A/20-bindings',
    attempt: 'get internal bindings and modules',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        ...Object.fromEntries(
          ['fs', 'process_wrap', 'natives', 'contextify', 'spawn_sync', 'os', 'config'].map((name) => [
            name,
            `return (process as any).binding('${name}') && 'bound'`,
          ]),
        ),
        prototype: `return Object.getPrototypeOf(process).binding?.('fs') && 'bound'`,
        internal: `${REQUIRE} return require('internal/bootstrap/realm')`,
        builtin: `return (process as any).getBuiltinModule('internal/util')`,
        handle: `const { ChildProcess }: any = await import('node:child_process'); return new ChildProcess()._handle && 'a handle of an arbitrary process'`,
        prototypeHandle: `const { ChildProcess }: any = await import('node:child_process'); return Reflect.construct(ChildProcess, []) && 'a handle'`,
        hook: `const found: any[] = []; (await import('node:async_hooks')).createHook({ init: (id, type, trigger, resource: any) => { if (type === 'PROCESSWRAP') found.push(resource) } }).enable();
          try { (await import('node:child_process')).spawn('true') } catch {}
          return found.length ? 'a handle' : null`,
      }),
  },
  {
    id: 'A/21-vm',
    attempt: 'gain rights by contexts, constructors, hooks and dropped permissions',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        vm: `const vm = await import('node:vm'); return vm.runInNewContext('f("/etc/passwd")', { f: (await import('node:fs')).readFileSync })`,
        constructor: `const vm = await import('node:vm'); return vm.runInNewContext('this.constructor.constructor("return process")()').kill(-1, 0)`,
        dynamic: `return (await new Function('return import("/etc/passwd")')())`,
        compile: `const M: any = (await import('node:module')).default; const m = new M('/etc/x.js'); m._compile('module.exports = require("fs").readFileSync("/etc/passwd")', '/etc/x.js'); return m.exports`,
        realm: `return new (globalThis as any).ShadowRealm().evaluate('1')`,
        drop: `(process as any).permission.drop?.('fs.read'); return (await import('node:fs')).readFileSync('/etc/passwd')`,
        stack: `let found; (Error as any).prepareStackTrace = (_: any, frames: any[]) => frames; try { for (const frame of (new Error() as any).stack) { const t = frame.getThis?.(); if (t && t.binding) found = t } } finally { (Error as any).prepareStackTrace = undefined } return found && 'internal this'`,
      }),
  },
  {
    id: 'A/31-pollution',
    attempt: 'change the frames to the service by polluted prototypes',
    severity: 'high',
    run: async (target) => {
      const { status, result } = await target.run(`export const attack = () => {
        Object.defineProperty(Object.prototype, 'env_id', { value: 'forged', configurable: true })
        Object.defineProperty(Object.prototype, 'toJSON', { value() { return 'forged' }, configurable: true })
        Object.defineProperty(Array.prototype, 'then', { value: (done: any) => done('forged'), configurable: true })
        return { kept: true }
      }`)
      const { api } = target.victim
      if (!(await api.get('/env'))) throw new Error('The service does not answer')
      return `the run of the attacker ended as ${status} ${JSON.stringify(result ?? null).slice(0, 40)}`
    },
  },
])
