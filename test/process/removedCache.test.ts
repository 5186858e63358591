import { rmSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { cachesOf } from '../attacks/diskUse.ts'
import { deploy, handle } from '../support/build.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const returning = (value: string) => ({
  'jobs.js': `import { fn } from 'svc'\nexport const paid = fn({ onEvent: 'paid' }, () => '${value}')\n`,
})

const removed = suite('a cache of builds that is removed while the service runs')

removed('is made again, so that functions run', async () => {
  const server = await spawnServer()
  await deploy(server.api, 'first', returning('first'))
  assert.is((await handle(server.api, 'paid')).result, 'first')
  for (const cache of cachesOf(server.dataDir)) rmSync(cache, { recursive: true })
  await deploy(server.api, 'first', returning('second'))
  assert.is((await handle(server.api, 'paid')).result, 'second')
  await server.stop()
})

removed.run()
