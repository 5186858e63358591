import { newId } from '../../src/ids.ts'
import { follow } from '../api/sse.ts'
import { deploy, handle, publish } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { attackSuite } from './attack.ts'

/** Opens the databases of the service in every way that Node has, and moves an API key to another environment. */
const TAKEOVER = `
  export const attack = async ({ dir, env_id, victim }: any) => {
    const tried: any = {}
    const ways: any = {
      import: () => import('node:sqlite'),
      builtin: async () => process.getBuiltinModule('node:sqlite'),
      require: async () => (await import('node:module')).createRequire(import.meta.url)('node:sqlite'),
      binding: async () => (process as any).binding('sqlite'),
    }
    for (const [name, load] of Object.entries<any>(ways))
      try {
        const { DatabaseSync } = await load()
        for (const file of ['read-models.db', 'log.db']) {
          const db = new DatabaseSync(dir + '/' + file)
          const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
          let changed = 0
          for (const table of tables)
            for (const column of db.prepare('PRAGMA table_info("' + table.name + '")').all())
              try {
                changed += db.prepare('UPDATE "' + table.name + '" SET "' + column.name + '" = replace("' + column.name + '", ?, ?)').run(env_id, victim).changes
              } catch {}
          tried[name + ' ' + file] = 'changed ' + changed
        }
      } catch (error: any) {
        tried[name] = 'refused: ' + (error?.code ?? error?.message)
      }
    return tried
  }
`

/** The status of a stream, with the events that it sent until a mark of the follower's own environment. */
const followed = async (
  api: Api,
  path: string,
  lastId?: string,
): Promise<{ status: string; seen: string }> => {
  try {
    const follower = await follow(api, path, lastId === undefined ? {} : { lastId })
    const { stream_id } = await publish(api, 'mark')
    let seen = ''
    if (path.startsWith('/env'))
      while (!seen.includes(stream_id)) seen += JSON.stringify(await follower.next())
    else seen = JSON.stringify(follower.seen)
    follower.close()
    return { status: '200', seen }
  } catch (error) {
    return { status: /got (\d{3})/.exec(String(error))?.[1] ?? String(error), seen: '' }
  }
}

attackSuite('other tenants', [
  {
    id: 'A/18-sqlite-takeover',
    attempt: 'move an API key into the environment of another tenant by writing the databases of the service',
    severity: 'critical',
    async run({ run, server, attacker, victim }) {
      const before = await attacker.api.get<{ env_id: string }>('/env')
      const { result, status, error } = await run(TAKEOVER, {
        dir: server.dataDir,
        env_id: attacker.env_id,
        victim: victim.env_id,
      })
      if (status !== 'succeeded') throw new Error(`the function ended ${status}: ${error?.message}`)
      const ways = result as Readonly<Record<string, string>>
      const through = Object.entries(ways).filter(([, outcome]) => !outcome.startsWith('refused'))
      if (through.length > 0) throw new Error(`went through: ${JSON.stringify(through)}`)
      const after = await attacker.api.get<{ env_id: string }>('/env')
      if (after.env_id !== before.env_id) throw new Error(`the key is valid for ${after.env_id}`)
      return Object.entries(ways)
        .map((way) => way.join(' '))
        .join('; ')
    },
  },
  {
    id: 'A/21-live-streams',
    attempt:
      'follow the streams of another environment: by id, Last-Event-ID, cursor, project or consumer name',
    severity: 'critical',
    async run({ attacker, victim }) {
      const planted = `planted-${newId()}`
      const project = `private-${newId()}`
      await deploy(victim.api, project, {
        'main.ts': `import { emit, fn } from 'svc'
          export const on = fn({ 'on-event': 'private' }, async ({ data }) => { await emit('secret', data); return data })`,
      })
      const consumer = `c-${newId()}`
      const own = await follow(victim.api, `/env/subscribe?consumer=${consumer}`)
      const { stream_id } = await handle(victim.api, 'private', planted)
      const { id } = await own.next()
      own.close()
      const paths: readonly (readonly [string, string?])[] = [
        [`/streams/${stream_id}/subscribe`],
        [`/streams/${stream_id}/subscribe?from=start`],
        [`/streams/${stream_id}/subscribe`, '0'],
        [`/streams/${stream_id}/subscribe?project=${project}`],
        [`/streams/${newId()}/subscribe`],
        ['/env/subscribe?from=start'],
        ['/env/subscribe', id],
        [`/env/subscribe?from=${id}`],
        [`/env/subscribe?consumer=${consumer}`],
        ['/env/subscribe?consumer=mine'],
      ]
      const outcomes: string[] = []
      for (const [path, lastId] of paths) {
        const { status, seen } = await followed(attacker.api, path, lastId)
        if (seen.includes(stream_id) || seen.includes(planted) || seen.includes(victim.env_id))
          throw new Error(`${path} sent events of the other environment: ${seen.slice(0, 200)}`)
        outcomes.push(status)
      }
      const [other, random] = [
        await attacker.api.send('GET', `/streams/${stream_id}/subscribe`),
        await attacker.api.send('GET', `/streams/${newId()}/subscribe`),
      ]
      if (other.status !== 404 || random.status !== 404) throw new Error(`${other.status}, ${random.status}`)
      const published = await attacker.api.send('POST', '/events', {
        body: { event_type: 'private', event_data: 1, stream_id },
      })
      if (published.status < 400) throw new Error(`an event was published to the stream: ${published.status}`)
      const runs = await victim.api.page<{ event_id: string }>(`/runs?limit=100`)
      if (runs.data.length !== 1) throw new Error(`${runs.data.length} runs in the other environment`)
      return `${paths.length} ways: ${outcomes.join(', ')}; an event into the stream: ${published.status}`
    },
  },
])
