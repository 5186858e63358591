import { rmSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { cachesOf } from '../attacks/diskUse.ts'
import { deploy, handle } from '../support/build.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const returning = (value: string) => ({
  'jobs.js': `import { fn } from 'svc'\nexport const paid = fn({ onEvent: 'paid' }, () => '${value}')\n`,
})

const removed = suite('unpacked builds that are removed while the service runs')

removed('are unpacked again, so that functions run', async () => {
  const server = await spawnServer()
  await deploy(server.api, 'first', returning('first'))
  assert.is((await handle(server.api, 'paid')).result, 'first')
  for (const cache of cachesOf(server.dataDir))
    for (const name of ['builds', 'tmp', 'unsynced']) rmSync(join(cache, name), { recursive: true })
  await deploy(server.api, 'first', returning('second'))
  assert.is((await handle(server.api, 'paid')).result, 'second')
  await server.stop()
})

removed.run()
