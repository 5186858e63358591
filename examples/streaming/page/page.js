import { createClient } from 'svc/client'

const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const answer = document.querySelector('pre')

const ask = async (question) => {
  const response = await fetch('/ask', { method: 'POST', body: question })
  if (!response.ok) throw new Error(`The server replied with ${response.status}`)
  return response.json()
}

form.addEventListener('submit', async (submitted) => {
  submitted.preventDefault()
  answer.textContent = ''
  status.textContent = 'asking'
  try {
    const { url, stream_id, token } = await ask(new FormData(form).get('question'))
    status.textContent = 'answering'
    // A lost connection is opened again after the last event, so no token is lost or repeated.
    for await (const { event, data } of createClient({ url, token }).follow(stream_id))
      if (event === 'stream:data') answer.textContent += data.payload
    status.textContent = 'complete'
  } catch (error) {
    status.textContent = error.message
  }
})
