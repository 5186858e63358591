import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { attackSuite } from './attack.ts'
import { runIn } from './target.ts'
import { refuses } from './tries.ts'

const FS = `const fs = (await import('node:fs'));`

attackSuite('files of the host and of the service', [
  {
    id: 'A/01-read-data-dir',
    attempt: 'read the secrets, the log, the read models, the blobs and the lock of the data directory',
    severity: 'critical',
    run: (target) =>
      refuses(
        target,
        {
          secrets: `return (await import('node:fs')).readFileSync(args.dir + '/secrets.json', 'utf8')`,
          log: `return (await import('node:fs')).openSync(args.dir + '/log.db', 'r')`,
          promises: `return await (await import('node:fs/promises')).readFile(args.dir + '/read-models.db')`,
          list: `return (await import('node:fs')).readdirSync(args.dir)`,
          blobs: `return (await import('node:fs')).readdirSync(args.dir + '/blobs')`,
          stat: `return (await import('node:fs')).statSync(args.dir + '/secrets.json').size`,
          above: `return (await import('node:fs')).readdirSync(process.cwd() + '/..')`,
          copy: `${FS} fs.cpSync(args.dir + '/secrets.json', '/tmp/s'); return fs.readFileSync('/tmp/s', 'utf8')`,
          link: `${FS} fs.symlinkSync(args.dir + '/secrets.json', '/tmp/l'); return fs.readFileSync('/tmp/l', 'utf8')`,
          hardLink: `${FS} fs.linkSync(args.dir + '/secrets.json', '/tmp/h'); return fs.readFileSync('/tmp/h', 'utf8')`,
          blob: `${FS} return (await (await fs.openAsBlob(args.dir + '/secrets.json')).text())`,
          opendir: `${FS} return fs.opendirSync(args.dir).readSync().name`,
          watch: `${FS} return fs.watch(args.dir) && 'watching'`,
          env: `process.loadEnvFile(args.dir + '/secrets.json'); return 'loaded'`,
        },
        { dir: target.server.dataDir },
      ),
  },
  {
    id: 'A/02-read-other-build',
    attempt: 'read, import or require the unpacked files of another build',
    severity: 'high',
    run: async (target) => {
      const other = await runIn(target.victim.api, {
        'main.ts': `export const attack = () => process.cwd() // ${'x'.repeat(32)}`,
      })
      return refuses(
        target,
        {
          list: `${FS} return fs.readdirSync(args.other)`,
          read: `${FS} return fs.readFileSync(args.other + '/main.ts', 'utf8')`,
          relative: `${FS} return fs.readFileSync('../' + args.other.split('/').at(-1) + '/main.ts', 'utf8')`,
          import: `return Object.keys(await import(args.other + '/main.ts')).join()`,
          require: `return Object.keys((await import('node:module')).createRequire(import.meta.url)(args.other + '/main.ts')).join()`,
          prefix: `${FS} return fs.readFileSync(process.cwd() + '/../' + args.other.split('/').at(-1) + '/main.ts')`,
        },
        { other: other.result },
      )
    },
  },
  {
    id: 'A/03-read-host',
    attempt: 'read files of the host and the code of the service',
    severity: 'high',
    run: (target) =>
      refuses(
        target,
        Object.fromEntries(
          [
            '/etc/passwd',
            '/etc/shadow',
            '/etc/hostname',
            '/etc/resolv.conf',
            join(homedir(), '.bashrc'),
            '/var/tmp',
            '/home',
            '/dev/mem',
            '/dev/kmsg',
            '/sys/kernel/notes',
            '/run',
            join(import.meta.dirname, '../../package.json'),
            join(import.meta.dirname, '../../src/main.ts'),
          ].map((path) => [
            path,
            `${FS} const path = ${JSON.stringify(path)}; return fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.openSync(path, 'r')`,
          ]),
        ),
      ),
  },
  {
    id: 'A/04-proc',
    attempt: 'read /proc: environments, memory, descriptors, command lines, own and of the service',
    severity: 'critical',
    run: ({ server, ...target }) =>
      refuses(
        { server, ...target },
        Object.fromEntries(
          ['self', 'thread-self', '1', String(server.process.pid)].flatMap((pid) =>
            ['environ', 'maps', 'mem', 'cmdline', 'root/etc/passwd', 'fd/0', 'fd/3', 'cwd', 'auxv'].map(
              (name) => [`${pid}/${name}`, `${FS} return fs.openSync('/proc/${pid}/${name}', 'r')`],
            ),
          ),
        ),
      ),
  },
  {
    id: 'A/05-path-tricks',
    attempt: 'reach a file by buffers, URLs, dots, NUL, patched path functions and links',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        buffer: `${FS} return fs.readFileSync(Buffer.from('/etc/passwd'))`,
        uint8: `${FS} return fs.readFileSync(new TextEncoder().encode('/etc/passwd'))`,
        url: `${FS} return fs.readFileSync(new URL('file:///etc/passwd'))`,
        encoded: `${FS} return fs.readFileSync(new URL('file:///%65tc/passwd'))`,
        dots: `${FS} return fs.readFileSync(process.cwd() + '/../../../../../../../../etc/passwd')`,
        slashes: `${FS} return fs.readFileSync('//etc//passwd')`,
        nul: `${FS} return fs.readFileSync('/etc/passwd\\0' + process.cwd())`,
        self: `${FS} return fs.readFileSync(['/proc/self/root', 'etc/passwd'].join('/'))`,
        tmp: `${FS} return fs.readFileSync('/tmp/../etc/passwd')`,
        patched: `const path = (await import('node:path')).default;
          const { resolve, toNamespacedPath } = path;
          path.resolve = () => process.cwd(); path.toNamespacedPath = () => process.cwd() + '/main.ts';
          (await import('node:module')).syncBuiltinESMExports();
          try { ${FS} return fs.readFileSync('/etc/passwd', 'utf8') }
          finally { path.resolve = resolve; path.toNamespacedPath = toNamespacedPath }`,
        fakeUrl: `${FS} return fs.readFileSync({ href: 'file:///etc/passwd', protocol: 'file:', pathname: '/etc/passwd', hostname: '' })`,
        link: `${FS} fs.symlinkSync('/etc', '/tmp/etc'); return fs.readFileSync('/tmp/etc/passwd', 'utf8')`,
      }),
  },
  {
    id: 'A/06-descriptors',
    attempt: 'read a file by a descriptor that the process inherited',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        files: `${FS} const found = []
          for (let fd = 0; fd < 1024; fd++) {
            try { const stat = fs.fstatSync(fd); if (stat.isFile() || stat.isDirectory()) found.push(fd) } catch {}
          }
          return found.length ? found.join() : null`,
      }),
  },
  {
    id: 'A/07-write',
    attempt: 'create, change, link or remove files in the data directory, the build, /tmp and the system',
    severity: 'critical',
    run: async (target) => {
      const name = `svc-attack-${target.server.process.pid}`
      const reason = await refuses(
        target,
        {
          data: `${FS} fs.writeFileSync(args.dir + '/evil', 'x'); return 'written'`,
          secrets: `${FS} fs.truncateSync(args.dir + '/secrets.json'); return 'truncated'`,
          remove: `${FS} fs.rmSync(args.dir + '/log.db'); return 'removed'`,
          build: `${FS} fs.writeFileSync('evil.js', 'x'); return 'written'`,
          own: `${FS} fs.appendFileSync('main.ts', 'x'); return 'appended'`,
          rename: `${FS} fs.renameSync('main.ts', 'other.ts'); return 'renamed'`,
          folder: `${FS} return fs.mkdtempSync('x-')`,
          cron: `${FS} fs.writeFileSync('/etc/cron.d/evil', 'x'); return 'written'`,
          root: `${FS} fs.writeFileSync('/evil', 'x'); return 'written'`,
          shm: `${FS} fs.writeFileSync('/dev/shm/evil', 'x'); return 'written'`,
          link: `${FS} fs.symlinkSync('/etc/passwd', 'link'); return 'linked'`,
          mode: `${FS} fs.chmodSync('main.ts', 0o777); return 'changed'`,
          stream: `${FS} const { once } = await import('node:events'); const to = fs.createWriteStream('x.txt'); to.write('x'); await once(to, 'open'); return 'open'`,
        },
        { dir: target.server.dataDir },
      )
      // The namespace tier has a /tmp of its own.
      await target.run(`import { writeFileSync } from 'node:fs'
        export const attack = () => { try { writeFileSync('/tmp/${name}', 'x') } catch {} }`)
      if (existsSync(`/tmp/${name}`)) throw new Error(`/tmp/${name} exists on the host`)
      return reason
    },
  },
  {
    id: 'A/07-tmp-fill',
    attempt: 'fill the disk or the memory of the node with files in /tmp',
    severity: 'high',
    run: async (target) => {
      const { result } = await target.run(`import { appendFileSync } from 'node:fs'
        export const attack = () => {
          const block = Buffer.alloc(1 << 20)
          try { for (let n = 0; n < 1024; n++) appendFileSync('/tmp/fill-' + (n >> 5), block) } catch (error: any) { return error.code }
          return 'wrote 1 GiB'
        }`)
      if (result !== 'ENOSPC' && result !== 'ERR_ACCESS_DENIED') throw new Error(String(result))
      return `ended by ${result}`
    },
  },
  {
    id: 'A/08-fd-metadata',
    attempt: 'change a file of the build by a descriptor that was opened for reading',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        fchmod: `${FS} fs.fchmodSync(fs.openSync('main.ts', 'r'), 0o777); return 'changed'`,
        fchown: `${FS} fs.fchownSync(fs.openSync('main.ts', 'r'), 0, 0); return 'changed'`,
        futimes: `${FS} fs.futimesSync(fs.openSync('main.ts', 'r'), 1, 1); return 'changed'`,
        ftruncate: `${FS} fs.ftruncateSync(fs.openSync('main.ts', 'r')); return 'truncated'`,
        write: `${FS} return fs.writeSync(fs.openSync('main.ts', 'r'), 'x')`,
        handle: `const file = await (await import('node:fs/promises')).open('main.ts'); await file.chmod(0o777); return 'changed'`,
      }),
  },
  {
    id: 'A/22-imports',
    attempt: 'import by absolute paths, URLs, package exports and links that lead out of the build',
    severity: 'high',
    run: async (target) => {
      const outside = join(target.server.dataDir, 'outside.mjs')
      mkdirSync(target.server.dataDir, { recursive: true })
      writeFileSync(outside, `export default 'read'`)
      try {
        return await refuses(
          target,
          {
            path: `return (await import(args.outside)).default`,
            url: `return (await import('file://' + args.outside)).default`,
            data: `return (await import('data:text/javascript,export{default}from"file://' + args.outside + '"')).default`,
            http: `return Object.keys(await import('http://127.0.0.1/x.js')).join()`,
            json: `return JSON.stringify(await import('file:///etc/os-release', { with: { type: 'json' } }))`,
            require: `return (await import('node:module')).createRequire('/')(args.outside).default`,
            load: `return (await import('node:module')).default._load(args.outside).default`,
            extension: `const M = (await import('node:module')).default; const m = new M(args.outside); M._extensions['.js'](m, args.outside); return m.exports.default`,
            package: `return (await import('node:module')).findPackageJSON('file://' + args.outside)`,
            service: `return Object.keys(await import(args.root + '/src/main.ts')).join()`,
          },
          { outside, root: join(import.meta.dirname, '../..') },
        )
      } finally {
        rmSync(outside, { force: true })
      }
    },
  },
  {
    id: 'A/23-sdk-internals',
    attempt: 'read the code of the service through the modules that a child shares with it',
    severity: 'critical',
    run: (target) =>
      refuses(target, {
        svc: `const known = ['call', 'callWith', 'context', 'currentRun', 'emit', 'files', 'fn', 'run', 'send']
          const more = Object.keys(await import('svc')).filter((name) => !known.includes(name))
          return more.length ? more.join() : null`,
        files: `${FS} const { fileURLToPath } = await import('node:url'); const { dirname } = await import('node:path');
          const root = dirname(dirname(fileURLToPath(import.meta.resolve('svc'))))
          const found = fs.readdirSync(root, { recursive: true }).filter((name: string) => /secret|keyring|main|config|api|worker\\b|commands/.test(name))
          return found.length ? found.join() : null`,
      }),
  },
  {
    id: 'A/24-environment',
    attempt: 'find secrets of the service in the environment, the arguments and the diagnostic report',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        env: `const more = Object.keys(process.env).filter((name) => !['PATH', 'TZ'].includes(name)); return more.length ? more.join() : null`,
        arguments: `return process.argv.concat(process.execArgv).some((text) => /svc_|secret|key=/i.test(text)) ? process.argv.join() : null`,
        report: `return process.report?.getReport?.().header?.host`,
        interfaces: `return Object.keys((await import('node:os')).networkInterfaces()).join() || null`,
      }),
  },
  {
    id: 'A/25-report-files',
    attempt: 'make Node write files: reports, heap snapshots, traces, profiles, compile cache, coverage',
    severity: 'high',
    run: (target) =>
      refuses(target, {
        report: `return process.report.writeReport('/var/tmp/svc-report.json')`,
        snapshot: `return (await import('node:v8')).writeHeapSnapshot('/var/tmp/svc.heapsnapshot')`,
        near: `(await import('node:v8')).setHeapSnapshotNearHeapLimit(1); return 'set'`,
        profileNear: `const v8: any = await import('node:v8'); v8.setHeapProfileNearHeapLimit?.(1); return v8.setHeapProfileNearHeapLimit && 'set'`,
        coverage: `(await import('node:v8')).takeCoverage(); return 'taken'`,
        trace: `(await import('node:trace_events')).createTracing({ categories: ['v8'] }).enable(); return 'enabled'`,
        cache: `return (await import('node:module')).enableCompileCache('/var/tmp/svc-cache').directory`,
      }),
  },
  {
    id: 'A/26-existence',
    attempt: 'find out which files the host has',
    severity: 'low',
    run: async (target) => {
      const { result } = await target.run(
        `import fs from 'node:fs'
        import nodeModule, { createRequire, findPackageJSON } from 'node:module'
        import vm from 'node:vm'
        const tried = async (look: () => unknown) => {
          try { return JSON.stringify(await look()) } catch (error: any) { return String(error.code) }
        }
        const look = (path: string) => {
          const require: any = createRequire(import.meta.url)
          const name = path.split('/').at(-1)
          const M: any = nodeModule
          const inMain = (specifier: string, filename?: string) =>
            new vm.Script(\`import(\${JSON.stringify(specifier)})\`, { filename, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }).runInThisContext()
          return Promise.all([
            () => require.resolve(path), () => require(path), () => import(path), () => import.meta.resolve('./../../../../../../../..' + path),
            () => require.resolve('./' + name, { paths: ['/etc'] }), () => M._findPath(path, ['']), () => M._findPath(name, ['/etc']),
            () => M._stat(path), () => M._resolveFilename(path), () => M._load(path), () => findPackageJSON('..', 'file://' + path),
            () => import('data:text/javascript,import "file://' + path + '"'), () => fs.existsSync(path), () => fs.accessSync(path),
            () => fs.statSync(path), () => fs.realpathSync.native(path), () => fs.statfsSync(path).type, () => fs.readlinkSync(path),
            () => createRequire(path)('./x'), () => createRequire(path + '/y').resolve('x'), () => process.chdir(path),
            () => require.resolve('..' + '/..'.repeat(12) + path), () => M._pathCache && Object.keys(M._pathCache).includes(path),
            () => fs.realpathSync(path), () => fs.realpathSync(Buffer.from(path)), () => fs.realpathSync(new URL('file://' + path)),
            () => inMain(path), () => inMain('file://' + path), () => inMain('./' + name, '/etc/x.js'), () => inMain(path + '/..'),
          ].map(tried)).then((found) => found.map((text) => text.replaceAll(name!, 'NAME')))
        }
        export const attack = async (there: string, missing: string) => [await look(there), await look(missing)]`,
        '/etc/passwd',
        '/etc/passwb',
      )
      const [there, missing] = result as readonly [string[], string[]]
      const different = there.filter((text, index) => text !== missing[index])
      if (different.length > 0) throw new Error(`different for a file that exists: ${different.join()}`)
      return `${there.length} ways to look give the same answer for both`
    },
  },
])
