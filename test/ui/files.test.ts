import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { tempDir } from '../support/tempDir.ts'

const story = stories('the files in the dashboard')

story(
  'each upload has the path of its own file, or the one that the reader wrote',
  async ({ chromium, server }) => {
    const { page, errors } = await openDashboard(chromium, server, { path: '/files' })
    const dir = tempDir()
    for (const name of ['first', 'second', 'wrong']) writeFileSync(join(dir, `${name}.txt`), name)
    const dialog = page.getByRole('dialog', { name: 'Upload' })
    const [file, path] = [dialog.getByLabel('File'), dialog.getByLabel('Path')]
    const open = () => page.getByRole('button', { name: 'Upload' }).click()
    const store = async (expected: string) => {
      assert.is(await path.inputValue(), expected)
      await dialog.getByRole('button', { name: 'Upload' }).click()
      await page.getByText(`Stored ${expected}, `).waitFor()
    }

    await open()
    await file.setInputFiles(join(dir, 'first.txt'))
    await store('first.txt')

    await open()
    assert.is(await path.inputValue(), '')
    await file.setInputFiles(join(dir, 'wrong.txt'))
    await file.setInputFiles(join(dir, 'second.txt'))
    await store('second.txt')

    await open()
    await path.fill('own/path.txt')
    await file.setInputFiles(join(dir, 'second.txt'))
    await store('own/path.txt')
    assert.equal(
      await Promise.all(
        ['first.txt', 'second.txt', 'own/path.txt'].map(
          async (one) => (await server.api.send('GET', `/files/download/${one}`)).text,
        ),
      ),
      ['first', 'second', 'second'],
    )
    assert.equal(errors, [])
  },
)

story.run()
