import { accessSync, closeSync, constants, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { clock } from '../../clock.ts'
import { type Config, isEmbeddedUrl } from '../config.ts'
import { type EngineSetting, engineSettings, type Engines, probeEngine } from '../engines.ts'
import { type Check, checked, ok } from './check.ts'
import { checkClock, leastSkewMs } from './clock.ts'

/** The embedded engines of a running service. */
export type LiveEngines = Pick<Engines, 'store' | 'readModels' | 'blobs'>

type Urls = Pick<Config, 'eventStore' | 'readModels' | 'blobs' | 'redis' | 'dataDir'>

const NO_COLLECTION = { name: 'checks', version: 1, indexes: [] } as const

/** Asks every engine. `live`: those of this process; null when the service does not run here. */
export const checkEngines = async (config: Urls, live: LiveEngines | null): Promise<readonly Check[]> => {
  const { eventStore, readModels, blobs, redis, dataDir } = config
  const asked = await Promise.all([
    check('SVC_EVENT_STORE', eventStore, () => embedded(join(dataDir, 'log.db'), live?.store.head())),
    check('SVC_READ_MODELS', readModels, () =>
      embedded(join(dataDir, 'read-models.db'), live?.readModels.reader(NO_COLLECTION).checkpoint()),
    ),
    check('SVC_BLOBS', blobs, () => embedded(join(dataDir, 'blobs'), live?.blobs.head('checks'))),
    ...(redis === null ? [] : [check('SVC_REDIS', redis).then((checks) => checks.map(asOptional))]),
  ])
  return asked.flat()
}

/** Without Redis, the nodes work with higher latencies. */
const asOptional = (found: Check): Check =>
  found.state === 'failed' ? { ...found, state: 'warning' } : found

const check = (
  setting: EngineSetting,
  url: string,
  askEmbedded?: () => Promise<string>,
): Promise<readonly Check[]> => {
  const name = engineSettings[setting]
  if (askEmbedded && isEmbeddedUrl(url))
    return checked(
      name,
      'restore the data directory from a backup (docs/operations.md, Damage)',
      async () => [ok(name, await askEmbedded())],
    )
  return checked(name, `start the engine, or correct ${setting}`, () => checkExternal(name, setting, url))
}

const checkExternal = async (
  name: string,
  setting: EngineSetting,
  url: string,
): Promise<readonly Check[]> => {
  const began = clock.now()
  const { place, clock: found } = await probeEngine(setting, url)
  const ended = clock.now()
  const answers = ok(name, `${place} answers (${ended - began} ms)`)
  return found === null ? [answers] : [answers, checkClock(name, leastSkewMs(found, { began, ended }))]
}

const embedded = async (path: string, answer: Promise<unknown> | undefined): Promise<string> => {
  if (answer) {
    await answer
    return `embedded, in ${path}`
  }
  if (!existsSync(path)) return 'embedded, nothing is stored yet'
  accessSync(path, constants.R_OK | constants.W_OK)
  if (path.endsWith('.db') && !hasHeader(path)) throw new Error(`${path} is not a database of SQLite`)
  return `embedded, in ${path}`
}

/** The first bytes of a database of SQLite. */
const HEADER = 'SQLite format 3\0'

/** A database that has never been written is empty. */
const hasHeader = (path: string): boolean => {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(HEADER.length)
    const read = readSync(file, start, 0, HEADER.length, 0)
    return read === 0 || start.toString('latin1') === HEADER
  } finally {
    closeSync(file)
  }
}
