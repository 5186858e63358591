import { termsOf } from '../../src/plans/plans.ts'
import { type BuildUpload, upload } from '../support/build.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { expectRefusal, patiently } from './diskUse.ts'

attackSuite('numbers of a plan', [
  {
    id: 'B/11-amplification/functions',
    attempt: 'fill the memory of every node with projects and functions',
    severity: 'medium',
    async run(target) {
      const { api } = await target.tenant('free')
      const { projects, functions, functionsPerBuild } = termsOf.free.counts
      const create = (name: string) => patiently(() => api.send('POST', '/projects', { body: { name } }))
      const buildOf = (count: number) =>
        zipBuild({
          'main.js': Array.from({ length: count }, (_, i) => `export const f${i} = () => ${i}`).join('\n'),
        })
      for (let i = 0; i < projects; i++) {
        const { status, text } = await create(`p${i}`)
        if (status !== 201) throw new Error(text)
      }
      expectRefusal(await create('one-more'), 403, 'quota_exceeded')
      const large = await buildOf(functionsPerBuild + 1)
      expectRefusal(await patiently(() => upload(api, 'p0', large)), 403, 'quota_exceeded')
      const full = await buildOf(functionsPerBuild)
      let deployed = 0
      for (let i = 0; i <= functions / functionsPerBuild; i++) {
        const { json, text } = await patiently(() => upload(api, `p${i}`, full))
        const { data } = json as { data?: BuildUpload }
        if (!data) throw new Error(text)
        const answer = await patiently(() =>
          api.send('POST', `/projects/p${i}/builds/${data.build_id}/deploy`),
        )
        if (answer.status === 200) deployed += functionsPerBuild
        else expectRefusal(answer, 403, 'quota_exceeded')
      }
      if (deployed !== functions) throw new Error(`${deployed} functions are deployed`)
      return `${projects} projects and ${functions} functions on the free plan, then 403`
    },
  },
  {
    id: 'B/11-amplification/functions/schemas',
    attempt: 'fill the memory of every node with schemas of 8 KB that contain 2,500 empty objects',
    severity: 'medium',
    async run(target) {
      const { api } = await target.tenant('free')
      await api.send('POST', '/projects', { body: { name: 'p' } })
      const input = `{ type: 'object', enum: Array.from({ length: 2500 }, () => ({})) }`
      const mcp = `{ service: 's', description: 'd', input: ${input} }`
      const build = await zipBuild({
        'main.js': `import { fn } from 'svc'\nexport const f = fn({ mcp: ${mcp} }, () => 1)`,
      })
      const { status, text } = await patiently(() => upload(api, 'p', build))
      if (status !== 400 || !text.includes('fewer lists, objects and values')) throw new Error(text)
      return 'the build is refused with 400'
    },
  },
  {
    id: 'B/07-http/connections/streams',
    attempt: 'open live streams without end, and give them names without end',
    severity: 'low',
    async run(target) {
      const { api } = await target.tenant('free')
      const { streams, consumers } = termsOf.free.counts
      const closing: AbortController[] = []
      const held: Response[] = [] // a reply without a reference is closed by the garbage collector
      const open = (query = '') =>
        until(
          async () => {
            const closer = new AbortController()
            const reply = await fetch(`${api.url}/v1/env/subscribe${query}`, {
              headers: { Authorization: `Bearer ${api.key}` },
              signal: closer.signal,
            })
            if (reply.status === 200) {
              closing.push(closer)
              held.push(reply)
              return { status: 200, text: '', retry: null }
            }
            const text = await reply.text()
            const isRate = text.includes('requests per second')
            return isRate
              ? undefined
              : { status: reply.status, text, retry: reply.headers.get('Retry-After') }
          },
          { everyMs: 220 },
        )
      for (let i = 0; i < streams; i++) {
        const { status, text } = await open()
        if (status !== 200) throw new Error(`stream ${i}: ${status} ${text}`)
      }
      const refused = await open()
      if (refused.status !== 429 || !(Number(refused.retry) > 0))
        throw new Error(`${refused.status} ${refused.text}`)
      closing.shift()?.abort()
      const again = await until(async () => ((await open()).status === 200 ? true : undefined))
      const end = async () => {
        for (const closer of closing.splice(0)) closer.abort()
      }
      let named = 0
      for (; named <= consumers; named++) {
        await end()
        const reply = await until(async () => {
          const tried = await open(`?consumer=name-${named}`)
          return tried.status === 429 ? undefined : tried
        })
        if (reply.status !== 200) {
          expectRefusal({ ...reply, headers: new Headers(), json: undefined }, 403, 'quota_exceeded')
          break
        }
      }
      await end()
      if (!again || named !== consumers) throw new Error(`${named} names of consumers`)
      return `${streams} streams at a time, then 429 until one is closed; ${named} names of consumers, then 403`
    },
  },
])
