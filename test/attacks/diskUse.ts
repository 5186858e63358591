import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer } from '../support/http.ts'
import { until } from '../support/until.ts'

/** The folders with unpacked builds of a service: in its data directory, or outside if children have users of their own. */
export const cachesOf = (dataDir: string): string[] => {
  const digest = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16)
  return [join(dataDir, 'cache'), `/var/tmp/svc-${digest}`].filter((dir) => existsSync(dir))
}

export const bytesIn = (dir: string): number => {
  if (!existsSync(dir)) return 0
  let bytes = 0
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    try {
      bytes += lstatSync(join(entry.parentPath, entry.name)).blocks * 512
    } catch {} // it was removed meanwhile
  }
  return bytes
}

/** Bytes of everything that a service has on the disk for builds. */
export const buildBytes = (dataDir: string): number =>
  cachesOf(dataDir)
    .flatMap((dir) => [join(dir, 'builds'), join(dir, 'tmp')])
    .concat(join(dataDir, 'uploads'), join(dataDir, 'blobs'))
    .reduce((sum, dir) => sum + bytesIn(dir), 0)

/** Fails unless the request was refused with the status, and with the code of an error. */
export const expectRefusal = ({ status, text }: Answer, expected: number, code?: string): void => {
  if (status !== expected || (code !== undefined && !text.includes(`"${code}"`)))
    throw new Error(`Expected ${expected} ${code ?? ''}, got ${status} ${text.slice(0, 300)}`)
}

/** Sends again while the rate of the plan is used up. */
export const patiently = (send: () => Promise<Answer>): Promise<Answer> =>
  until(
    async () => {
      const answer = await send()
      return answer.status === 429 && answer.text.includes('requests per second') ? undefined : answer
    },
    { everyMs: 250, timeoutMs: 40_000 },
  )
