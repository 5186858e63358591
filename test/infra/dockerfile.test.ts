import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import packageJson from '../../package.json' with { type: 'json' }
import { suite } from '../support/suite.ts'

const dockerfile = suite('Dockerfile')

dockerfile('starts the service with the options of npm start', () => {
  const text = readFileSync(new URL('../../infra/Dockerfile', import.meta.url), 'utf8')
  const command = JSON.parse(/^CMD (\[.*\])$/m.exec(text)?.[1] ?? '[]') as string[]
  assert.is(`exec ${command.join(' ')}`, packageJson.scripts.start)
})

dockerfile.run()
