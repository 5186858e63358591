import type { Config } from '../../src/process/config.ts'
import { openBlobs, openStore } from '../../src/process/engines.ts'
import { openMasterKeys } from '../../src/process/openMasterKeys.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Keyring } from '../../src/secrets/keyring.ts'

/** Opens the log of an installation, and its keyring without data keys. The first call founds the installation. */
export const openLog = async (config: Config): Promise<{ store: EventStore; keyring: Keyring }> => {
  const secrets = openSecrets(config)
  const store = await openStore(config)
  const blobs = await openBlobs(config)
  const { rootKey } = await openMasterKeys({ store, blobs }, secrets)
  await blobs.close()
  return { store, keyring: new Keyring(rootKey) }
}
