import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { type BuildUpload, type Run, upload } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { plantedFile } from '../support/plantedFile.ts'
import { plantOrg } from '../support/plantOrg.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { bytesIn, expectRefusal, patiently } from './diskUse.ts'
import type { Target } from './target.ts'

const MB = 1 << 20

/** A build of this many bytes that cannot be compressed. */
const incompressible = (bytes: number) =>
  zipBuild({ 'main.js': 'export const f = () => 1', 'noise.bin': randomBytes(bytes) })

const FREE = termsOf.free.limits
/** Room that is left in the planted organization. */
const LEFT = 12 * MB

/** The planted organization and its service, by target. */
const planted = new WeakMap<Target, Promise<{ api: Api; dataDir: string }>>()

/** An organization on the free plan that has used all but `LEFT` of its storage for files and for runs. */
const nearlyFull = (target: Target): Promise<{ api: Api; dataDir: string }> => {
  const known = planted.get(target) ?? plant(target)
  planted.set(target, known)
  return known
}

const plant = async (target: Target): Promise<{ api: Api; dataDir: string }> => {
  const dataDir = tempDir()
  const file = plantedFile('planted', FREE.storage_bytes - LEFT)
  const data: DomainEvent = {
    type: 'StreamDataEmitted',
    run_id: newId(),
    stream_id: newId(),
    data_type: 'planted',
    payload_ref: { key: 'payloads/planted', size: FREE.call_storage_bytes - LEFT, sha256: 'a'.repeat(64) },
  }
  const [org] = await plantOrg(dataDir, 'free', [file, data])
  const { server } = await target.fresh({}, dataDir)
  return { api: openApi(server.url, org?.key ?? ''), dataDir }
}

const storedBytes = async (api: Api): Promise<number> =>
  (await until(() => api.get<{ usage: { file_storage_bytes: number } }>('/org/usage'))).usage
    .file_storage_bytes

/** Announces a file of this size. Resolves when the service asks for its content, of which nothing is sent. */
const announce = (api: Api, path: string, bytes: number): Promise<Socket> =>
  until(
    async () => {
      const { hostname, port } = new URL(api.url)
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(
        `PUT /v1/files/upload/${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${api.key}\r\n` +
          `Content-Type: text/plain\r\nContent-Length: ${bytes}\r\nExpect: 100-continue\r\n\r\n`,
      )
      const [reply] = (await once(socket, 'data')) as [Buffer]
      if (reply.toString().startsWith('HTTP/1.1 100 ')) return socket
      socket.destroy() // the rate of the plan is used up
      return undefined
    },
    { everyMs: 300 },
  )

const full = async (
  target: Target,
  work: (api: Api, dataDir: string) => Promise<string>,
): Promise<string> => {
  const { api, dataDir } = await nearlyFull(target)
  return work(api, dataDir)
}

attackSuite('storage of a plan', [
  {
    id: 'A/15-disk/builds',
    attempt: 'store zips of builds that no quota counts, also of deleted projects',
    severity: 'medium',
    run: (target) =>
      full(target, async (api, dataDir) => {
        const before = await storedBytes(api)
        await patiently(() => api.send('POST', '/projects', { body: { name: 'stored' } }))
        const zip = await incompressible(4 * MB)
        const accepted = await patiently(() => upload(api, 'stored', zip))
        if (accepted.status !== 201) throw new Error(`Expected 201, got ${accepted.text}`)
        const counted = (await storedBytes(api)) - before
        if (counted !== zip.bytes.length) throw new Error(`${counted} bytes counted of ${zip.bytes.length}`)
        expectRefusal(
          await patiently(() => upload(api, 'stored', zip)).then(async (second) => {
            if (second.status !== 201) return second
            const third = await incompressible(5 * MB)
            return patiently(() => upload(api, 'stored', third))
          }),
          403,
          'quota_exceeded',
        )
        const full = bytesIn(join(dataDir, 'blobs'))
        await patiently(() => api.send('DELETE', '/projects/stored'))
        const freed = full - bytesIn(join(dataDir, 'blobs'))
        if ((await storedBytes(api)) !== before || freed < 8 * MB)
          throw new Error(`${freed} bytes were freed by the deletion of the project`)
        return `each zip counts, the third is refused, and the deletion of the project frees ${freed} bytes`
      }),
  },
  {
    id: 'A/15-disk/parts',
    attempt: 'leave parts of uploads that are never completed, at once, beyond the plan',
    severity: 'medium',
    run: (target) =>
      full(target, async (api) => {
        const begin = () => patiently(() => api.send('POST', '/files/uploads', { body: { path: newId() } }))
        const ids: string[] = []
        for (let i = 0; i < termsOf.free.counts.uploads; i++) {
          const { json, text } = await begin()
          const { data } = json as { data?: { upload_id: string } }
          if (!data) throw new Error(text)
          ids.push(data.upload_id)
        }
        expectRefusal(await begin(), 403, 'quota_exceeded')
        const part = Buffer.alloc(5 * MB)
        const answers = await Promise.all(
          ids
            .slice(0, 5)
            .map((id) => patiently(() => api.send('PUT', `/files/uploads/${id}/1`, { body: part }))),
        )
        const stored = answers.filter(({ status }) => status === 200).length
        if (stored !== Math.floor(LEFT / part.length))
          throw new Error(
            `${stored} of ${answers.length} parts were stored: ${answers.map(({ status }) => status).join()}`,
          )
        const used = await storedBytes(api)
        if (used !== FREE.storage_bytes - LEFT + stored * part.length)
          throw new Error(`${used} bytes counted`)
        const abort = () =>
          api.send('DELETE', `/files/uploads/${ids[answers.findIndex(({ status }) => status === 200)]}`)
        await patiently(abort)
        const after = await storedBytes(api)
        if (used - after !== part.length) throw new Error(`${used - after} bytes were released`)
        for (const id of ids) await patiently(() => api.send('DELETE', `/files/uploads/${id}`))
        return `${stored} of 5 concurrent parts were stored and counted, and at most ${ids.length} uploads begin`
      }),
  },
  {
    id: 'A/15-disk/emit',
    attempt: 'emit live data beyond call_storage_bytes',
    severity: 'medium',
    run: (target) =>
      full(target, async (api) => {
        const code = `
          import { emit } from 'svc'
          export const attack = async () => {
            const payload = 'x'.repeat(${4 * MB})
            const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => emit('flood', payload + i)))
            return outcomes.map(({ status, reason }) => status === 'fulfilled' ? 'stored' : reason.code)
          }`
        await patiently(() => api.send('POST', '/projects', { body: { name: 'emitting' } }))
        const { json, text } = await patiently(() => upload(api, 'emitting', { 'main.ts': code }))
        const { data } = json as { data?: BuildUpload }
        if (!data) throw new Error(text)
        await patiently(() => api.send('POST', `/projects/emitting/builds/${data.build_id}/deploy`))
        const { event_id } = await until(
          () =>
            api
              .post<{ event_id: string }>('/events', {
                event_type: 'svc:call',
                event_data: { fn: 'main/attack' },
              })
              .catch(() => undefined),
          { everyMs: 300 },
        )
        const run = await until(
          async () => {
            const page = await api.page<Run>(`/events/${event_id}/runs`).catch(() => undefined)
            return page?.data[0] && page.data[0].status !== 'running' ? page.data[0] : undefined
          },
          { everyMs: 500, timeoutMs: 40_000 },
        )
        const outcomes = run.result as readonly string[]
        const stored = outcomes.filter((outcome) => outcome === 'stored').length
        if (run.status !== 'succeeded' || stored > LEFT / (4 * MB) || !outcomes.includes('quota_exceeded'))
          throw new Error(`${run.status}: ${JSON.stringify(run.result ?? run.error)}`)
        return `${stored} of 10 concurrent emits of 4 MB were stored, the others are quota_exceeded`
      }),
  },
  {
    id: 'A/15-disk/files',
    attempt: 'store files beyond the plan, by many announced and unfinished ones at once',
    severity: 'medium',
    run: (target) =>
      full(target, async (api) => {
        const held = await announce(api, 'held', 10 * MB)
        const put = (path: string, bytes: number) =>
          patiently(() => api.send('PUT', `/files/upload/${path}`, { body: Buffer.alloc(bytes) }))
        try {
          expectRefusal(await put('second', 3 * MB), 403, 'quota_exceeded')
        } finally {
          held.destroy()
        }
        const stored = await until(async () => {
          const answer = await put('third', 3 * MB)
          return answer.status < 300 ? answer : undefined
        })
        expectRefusal(await put('fourth', 10 * MB), 403, 'quota_exceeded')
        return `an announced file counts until its connection ends; then ${stored.status}, and 403 beyond the plan`
      }),
  },
])
