import { workerData } from 'node:worker_threads'
import { stripBuild } from '../../src/builds/strip.ts'
import { prepareChildCode } from '../../src/sandbox/childCode.ts'
import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'

const { dir, sources, codeDir } = workerData as { dir: string; sources: string[]; codeDir: string }
const options = { ...DEFAULT_OPTIONS, startMs: 60_000, inspectMs: 240_000 }
await stripBuild(dir, sources, { code: prepareChildCode(codeDir), options })
