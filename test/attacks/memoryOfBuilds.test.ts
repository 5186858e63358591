import { upload } from '../support/build.ts'
import { memorySuite, MIB, statuses } from './memory.ts'

/** Modules whose reports are just below the limit of one, and together below that of a build. */
const REPORTED = 8

/** Reports modules of small objects, and keeps its inspection open: the pipe may be full, so a write is repeated. */
const REPORTS = `
  import { writeSync } from 'node:fs'
  const write = (bytes) => {
    for (let at = 0; at < bytes.length;)
      try { at += writeSync(3, bytes, at) } catch {}
  }
  const functions = '[{"var":"f","metadata":[' + '{},'.repeat(${(2 * MIB - 1000) / 3}) + '1]}]'
  for (let n = 1; n <= ${REPORTED}; n++) {
    const json = Buffer.from('{"type":"module","ns":"","file":"b' + n + '.js","functions":' + functions + '}')
    const header = Buffer.alloc(4)
    header.writeUInt32BE(json.length)
    write(Buffer.concat([header, json]))
  }
  await new Promise((resolve) => setTimeout(resolve, 3000))
  throw new Error('The report is complete')
`

memorySuite('memory of the service: builds', [
  {
    id: 'B/11-amplification/inspections',
    attempt: 'report 16 MiB of small objects as the functions of eight modules, in two inspections at once',
    severity: 'high',
    tried: async ({ api }) => {
      const modules = Array.from({ length: REPORTED }, (_, n) => [`b${n + 1}.js`, 'export const f = () => 1'])
      const files = { 'a.js': REPORTS, ...Object.fromEntries(modules) }
      return statuses(
        [1, 2].map((n) => upload(api, 'memory', { ...files, [`b${n}.js`]: `export const f = () => -${n}` })),
      )
    },
  },
])
