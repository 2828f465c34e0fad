// Requests to the server. Every failure is an error with one sentence for people.

import { sentence } from "./units.js";

export class ApiError extends Error {
  constructor(status, text) {
    super(sentence(text));
    this.status = status;
  }
}

async function answerOf(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The dashboard does not answer. Is it still running?");
  }
  const body = response.headers.get("content-type")?.startsWith("application/json") ? await response.json() : null;
  if (!response.ok) throw new ApiError(response.status, body?.error ?? `The dashboard answered with status ${response.status}.`);
  return [response.status, body];
}

export const get = async (path, signal) => (await answerOf(path, { signal }))[1];

export const post = async (path, body) => (await answerOf(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}))[1];

const second = (signal) => new Promise((resolve, reject) => {
  setTimeout(resolve, 1000);
  signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
});

// The answer of a job, which the server computes in a process of its own: status 202 until it is done.
export async function job(path, signal) {
  for (;;) {
    const [status, body] = await answerOf(path, { signal });
    if (status !== 202) return body;
    await second(signal);
  }
}

export const query = (values) => new URLSearchParams(
  Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
