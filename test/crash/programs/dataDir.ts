import { join } from 'node:path'
import { readConfig } from '../../../src/process/config.ts'
import { lockDataDir } from '../../../src/process/dataDir.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const config = readConfig({ SVC_DATA_DIR: join(root, 'new', 'data') })
const unlock = lockDataDir(config.dataDir)
openSecrets(config)
acknowledge('new/data/secrets.json')
unlock()
