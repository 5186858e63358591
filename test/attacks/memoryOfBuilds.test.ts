import { createHash, randomBytes } from 'node:crypto'
import { upload } from '../support/build.ts'
import { rawZip } from '../support/hostileZips.ts'
import type { ZippedBuild } from '../support/zipBuild.ts'
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

/** TypeScript that a zip of 4 MB contains: files are written more slowly than they arrive. A character beyond Latin-1 doubles the memory of text. */
const TYPED = { files: 9990, source: `/*字${'a'.repeat(19_960)}*/export const f = () => 1` }

const typed = (): ZippedBuild => {
  const content = Buffer.from(TYPED.source)
  const bytes = rawZip([
    { name: 'main.js', content: Buffer.from('export const g = () => 1') },
    { name: 'asset', content: randomBytes(2 * MIB) }, // an archive may expand a hundred times
    ...Array.from({ length: TYPED.files }, (_, n) => ({ name: `_types/f${n}.ts`, content, method: 8 })),
  ])
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
}

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
  {
    id: 'B/11-amplification/types',
    attempt: 'upload two zips of 4 MB at once that contain 200 MB of TypeScript',
    severity: 'high',
    tried: async ({ api }) => statuses([typed(), typed()].map((build) => upload(api, 'memory', build))),
  },
])
