import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../src/ids.ts'
import { type BuildUpload, deploy, ended, type Run, upload } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { type RawEntry, rawZip } from '../support/hostileZips.ts'
import { spawnServer } from '../support/server.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { buildBytes, bytesIn, cachesOf, expectRefusal } from './diskUse.ts'

const MB = 1 << 20

const zipped = (entries: readonly RawEntry[]) => {
  const bytes = rawZip(entries)
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
}

attackSuite('disk', [
  {
    id: 'A/15-disk/failed-builds',
    attempt:
      'fill the disk with builds that are refused: archives that expand 1000 to 1, many folders, code that does not load',
    severity: 'high',
    async run(target) {
      const { api } = target.attacker
      await api.post('/projects', { name: 'failing' })
      const dir = target.server.dataDir
      const before = buildBytes(dir)
      const zeros = (count: number, each: number) =>
        Array.from({ length: count }, (_, n) => ({
          name: `z${n}.bin`,
          content: Buffer.alloc(each),
          method: 8,
        }))
      const broken = { name: 'main.js', content: Buffer.from('throw new Error("no")') }
      const sent = [
        zipped([broken, ...zeros(20, 9 * MB)]),
        zipped([broken, ...zeros(2, 9 * MB)]),
        zipped([broken, ...Array.from({ length: 900 }, (_, n) => ({ name: `${n}${'/d'.repeat(30)}/f` }))]),
        zipped([{ name: 'main.js', content: Buffer.from('for (;;) process.exit()') }, ...zeros(1, 9 * MB)]),
        zipped([
          { name: 'a.js', content: Buffer.from('') },
          { name: 'a.ts', content: Buffer.from('') },
          ...zeros(1, 9 * MB),
        ]),
        zipped([{ name: 'a.ts', content: Buffer.from('enum E { A }') }, ...zeros(1, 9 * MB)]),
      ]
      for (const zip of sent) expectRefusal(await upload(api, 'failing', zip), 400)
      const more = buildBytes(dir) - before
      if (more > MB) throw new Error(`${more} bytes more on the disk`)
      return `six refused uploads left ${more} bytes`
    },
  },
  {
    id: 'A/15-disk/killed',
    attempt: 'leave unpacked files by ending the service during an inspection',
    severity: 'high',
    async run(target) {
      const dataDir = tempDir()
      const env = { SVC_SANDBOX: target.tier }
      const first = await spawnServer({ dataDir, env })
      await first.api.post('/projects', { name: 'killed' })
      const large = { 'main.js': 'for (;;);', 'noise.bin': randomBytes(8 * MB) }
      const sending = upload(first.api, 'killed', large).catch(() => undefined)
      await until(() => buildBytes(dataDir) > 8 * MB)
      await first.end('SIGKILL')
      await sending
      const second = await spawnServer({ dataDir, env })
      try {
        await until(() => buildBytes(dataDir) < MB)
      } finally {
        await second.end('SIGKILL')
      }
      return 'the next start removed everything'
    },
  },
  {
    id: 'A/15-disk/cache',
    attempt: 'evict the hot build of another organization from the cache of unpacked builds',
    severity: 'medium',
    async run(target) {
      const fresh = await target.fresh({ SVC_BUILD_CACHE_MB: '64' })
      const { victim, attacker, server } = fresh
      await deploy(victim.api, 'hot', { 'main.js': 'export const f = () => 1' })
      await attacker.api.post('/projects', { name: 'flood' })
      const builds = () =>
        cachesOf(server.dataDir).flatMap((dir) =>
          existsSync(join(dir, 'builds')) ? readdirSync(join(dir, 'builds')) : [],
        )
      const [hot] = builds()
      const sparse = (n: number) =>
        zipped([
          { name: 'main.js', content: Buffer.from(`export const f = () => ${n}`) },
          ...Array.from({ length: 2 }, (_, i) => ({
            name: `${i}.bin`,
            content: Buffer.concat([randomBytes(MB), Buffer.alloc(12 * MB)]),
            method: 8,
          })),
        ])
      for (let n = 0; n < 5; n++) {
        const { status, text } = await upload(attacker.api, 'flood', sparse(n))
        if (status !== 201) throw new Error(`${status} ${text}`)
      }
      const left = builds()
      const bytes = cachesOf(server.dataDir).reduce((sum, dir) => sum + bytesIn(join(dir, 'builds')), 0)
      if (hot === undefined || !left.includes(hot) || bytes > 64 * MB)
        throw new Error(`${left.length} builds are left with ${bytes} bytes`)
      return `five builds of 26 MB evicted each other: ${Math.round(bytes / MB)} MB are left, with the victim's build`
    },
  },
  {
    id: 'A/23-shared-blob',
    attempt:
      'remove the zip of another organization by a refused upload, a deleted build and a deleted project with the same bytes',
    severity: 'medium',
    async run(target) {
      const { victim, attacker } = target
      const zip = await zipBuild({
        'main.js': `if (Math.random() < 0.5) throw new Error('unlucky')\nexport const f = () => 'mine'\n// ${newId()}`,
      })
      const uploaded = async (api: Api, wanted: number, project: string) =>
        until(async () => {
          const { status, json } = await upload(api, project, zip)
          return status === wanted ? ((json as { data?: BuildUpload }).data ?? { build_id: '' }) : undefined
        })
      for (const { api } of [victim, attacker]) await api.post('/projects', { name: 'shared' })
      const { build_id } = await uploaded(victim.api, 201, 'shared')
      await victim.api.post(`/projects/shared/builds/${build_id}/deploy`)
      await uploaded(attacker.api, 400, 'shared')
      const own = await uploaded(attacker.api, 201, 'shared')
      await attacker.api.remove(`/projects/shared/builds/${own.build_id}`)
      await uploaded(attacker.api, 201, 'shared')
      await attacker.api.remove('/projects/shared')
      const { status } = await victim.api.send('GET', `/projects/shared/builds/${build_id}/download`)
      if (status !== 200) throw new Error(`the download of the victim's build is ${status}`)
      const { event_id } = await victim.api.post<{ event_id: string }>('/events', {
        event_type: 'svc:call',
        event_data: { fn: 'main/f', project: 'shared' },
      })
      const run = await until(async () => (await victim.api.page<Run>(`/events/${event_id}/runs`)).data[0])
      await ended(victim.api, run.run_id)
      return 'each build has a zip of its own: the download is 200 after all three'
    },
  },
])
