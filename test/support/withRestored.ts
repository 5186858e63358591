import { join } from 'node:path'
import { type Embedded, spawnEmbedded } from './backedUp.ts'
import { cliJson } from './cli.ts'
import { tempDir } from './tempDir.ts'

/** Restores a backup of a service and starts a service there for a while. */
export const withRestored = async (
  dir: string,
  { dataDir: original }: Pick<Embedded, 'dataDir'>,
  use: (restored: Embedded) => Promise<void>,
): Promise<void> => {
  const dataDir = join(tempDir(), 'data')
  await cliJson(['restore', dir, '--secrets', join(original, 'secrets.json')], {
    env: { SVC_DATA_DIR: dataDir },
  })
  const server = await spawnEmbedded(dataDir)
  try {
    await use(server)
  } finally {
    await server.stop()
  }
}
