import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { type Api, openApi } from './http.ts'
import { EMBEDDED, installation } from './installation.ts'
import { type ServerProcess, spawnServer } from './server.ts'
import { tempDir } from './tempDir.ts'

/** Equal on every server, so that URLs in replies are; streams of server-sent events end soon, but not before their first events. */
const ENV = {
  ...EMBEDDED,
  SVC_MASTER_KEY: '',
  SVC_PUBLIC_URL: 'http://svc.test',
  SVC_SSE_TIMEOUT_MS: '5000',
  SVC_DNS_SERVERS: '127.0.0.1:9',
}

export interface Embedded extends ServerProcess {
  readonly operator: Api
  /** The environment of a command line next to the service. */
  readonly cliEnv: Readonly<Record<string, string>>
}

/** Starts a service with embedded engines in a process of its own, or with the engines that `engines` names. */
export const spawnEmbedded = async (
  dataDir: string = tempDir(),
  engines: Readonly<Record<string, string>> = {},
): Promise<Embedded> => {
  const env = { ...ENV, ...engines }
  const server = await spawnServer({ dataDir, env })
  const { operatorToken } = openSecrets(readConfig(installation(dataDir, env)))
  return {
    ...server,
    operator: openApi(server.url, operatorToken),
    cliEnv: { SVC_URL: server.url, SVC_DATA_DIR: dataDir, SVC_OPERATOR_TOKEN: operatorToken },
  }
}

const limiter = new URL('../fixtures/smallDisk.ts', import.meta.url).href

/** The environment of a process whose files may have this many bytes: writing more fails as on a full disk. */
export const smallDisk = (bytes: number): Record<string, string> => ({
  NODE_OPTIONS: `--import ${limiter}`,
  SVC_TEST_FILE_BYTES: String(bytes),
})

/** What `svc backup --json` prints. */
export interface Printed {
  readonly position: number
  readonly blobs: number
  readonly master_key_id: string
}

/** The files of a backup that its manifest names, and the manifest. */
export const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((file) => statSync(join(dir, file)).isFile() && statSync(join(dir, file)).size > 0)
    .filter((file) => !file.startsWith('lock.db'))
    .sort()

export const put = async ({ api }: Pick<Embedded, 'api'>, path: string, content: string): Promise<void> => {
  const { status, text } = await api.send('PUT', `/files/upload/${path}`, { body: content })
  assert.is(status, 200, text)
}
