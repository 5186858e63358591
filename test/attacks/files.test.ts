import { attackSuite } from './attack.ts'
import { refuses } from './tries.ts'

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
        },
        { dir: target.server.dataDir },
      ),
  },
])
