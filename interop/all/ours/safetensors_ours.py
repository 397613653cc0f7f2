"""For pytest -p: safetensors with our functions in place of its own."""

import io

import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import weighbridge


def save(tensors, metadata=None):
    target = io.BytesIO()
    weighbridge.save(target, tensors, metadata, format="safetensors")
    return target.getvalue()


def save_file(tensors, filename, metadata=None):
    weighbridge.save(filename, tensors, metadata, format="safetensors")


def load_file_of_torch(filename, device="cpu", **others):
    with weighbridge.safe_open(filename, "pt", device=device, **others) as file:
        return file.get_tensors()


def safe_open_handle(file, framework, device="cpu"):
    # Theirs takes a file that is open as text, too; it looks at no more than its number.
    return weighbridge.safe_open(getattr(file, "name", file), framework, device)


safetensors.safe_open = weighbridge.safe_open
safetensors._safe_open_handle = safe_open_handle
safetensors.SafetensorError = weighbridge.Error
safetensors.numpy.save = save
safetensors.numpy.save_file = save_file
safetensors.numpy.load = weighbridge.load
safetensors.numpy.load_file = weighbridge.load
safetensors.torch.save_file = save_file
safetensors.torch.load_file = load_file_of_torch
# Tests with several threads share one torch.
torch.set_num_threads(1)
